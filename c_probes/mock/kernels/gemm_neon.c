/* SPDX-License-Identifier: Apache-2.0
 *
 * aarch64 without the dot product extension (Cortex-A72 and A53 of RK3576): smull to int16, then sadalp adds
 * pairs to int32. One product at most before each pairwise add: two of -128 * -128 would not fit int16.
 */
#include "gemm_path.h"

#if defined(__aarch64__)

#include "gemm_tile.h"

#include <arm_neon.h>

enum { MR = 2, VECS = 4 }; /* two half sums per 4 columns: 16 of 32 registers */

static int available(void)
{
    return 1; /* Advanced SIMD is part of every aarch64 Linux ABI */
}

static ALWAYS_INLINE void block(const uint8_t *a, const int8_t *b, size_t quads, const unsigned m, uint32_t *c,
                                size_t ldc, const uint32_t *init)
{
    int32x4_t low[MR][VECS], high[MR][VECS]; /* columns 0, 1 and 2, 3 of each four; two K pairs per column */
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned v = 0; v < VECS; v++)
            low[r][v] = high[r][v] = vdupq_n_s32(0);
    for (size_t q = 0; q < quads; q++, a += m * GEMM_QUAD, b += GEMM_QUAD_BYTES) {
        int8x16_t y[VECS];
        UNROLL for (unsigned v = 0; v < VECS; v++)
            y[v] = vld1q_s8(b + v * 16);
        UNROLL for (unsigned r = 0; r < m; r++) {
            int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(gemm_word(a + r * GEMM_QUAD)));
            UNROLL for (unsigned v = 0; v < VECS; v++) {
                low[r][v] = vpadalq_s16(low[r][v], vmull_s8(vget_low_s8(y[v]), vget_low_s8(x)));
                high[r][v] = vpadalq_s16(high[r][v], vmull_high_s8(y[v], x));
            }
        }
    }
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned v = 0; v < VECS; v++) {
            uint32x4_t sum = vreinterpretq_u32_s32(vpaddq_s32(low[r][v], high[r][v]));
            const uint32_t *from = init ? init : c + r * ldc;
            vst1q_u32(c + r * ldc + v * 4, vaddq_u32(vld1q_u32(from + v * 4), sum));
        }
}

static void tile(const void *a, const int8_t *b, size_t b_stride, size_t quads, unsigned m, unsigned np, uint32_t *c,
                 size_t ldc, const uint32_t *init)
{
    (void)b_stride; /* one panel at a time */
    (void)np;
    switch (m) {
    case 1: block(a, b, quads, 1, c, ldc, init); break;
    case 2: block(a, b, quads, 2, c, ldc, init); break;
    }
}

const struct gemm_path gemm_path_neon = {.name = "neon", .available = available, .tile = tile, .form = GEMM_A_S8,
    .mr = MR, .nr = 1, .block_quads = 512};

#endif
