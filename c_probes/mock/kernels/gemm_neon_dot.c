/* SPDX-License-Identifier: Apache-2.0
 *
 * aarch64 with the dot product extension (Cortex-A76 of RK3588, A55 beside it): sdot takes
 * 4 columns by 4 K values of signed bytes as they lie in the packed panel.
 */
#include "gemm_path.h"

#if defined(__aarch64__)

#include "gemm_tile.h"

#include <arm_neon.h>
#include <sys/auxv.h>

#if defined(__clang__)
#define TARGET __attribute__((target("dotprod")))
#else
#define TARGET __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
enum { MR = 6, VECS = 4, HWCAP_DOT = 1 << 20 }; /* 24 of 32 registers hold sums; Linux calls the bit asimddp */

static int available(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_DOT) != 0;
}

/* Written as an instruction: some compilers hide the intrinsic unless the whole file is built for the extension, and
 * this library must run on CPUs without it. */
TARGET static ALWAYS_INLINE int32x4_t sdot(int32x4_t sum, int8x16_t x, int8x16_t y)
{
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(x), "w"(y));
    return sum;
}

TARGET static ALWAYS_INLINE void block(const uint8_t *a, const int8_t *b, size_t quads, const unsigned m, uint32_t *c,
                                       size_t ldc, const uint32_t *init)
{
    int32x4_t sum[MR][VECS];
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned v = 0; v < VECS; v++)
            sum[r][v] = vreinterpretq_s32_u32(vld1q_u32((init ? init : c + r * ldc) + v * 4));
    for (size_t q = 0; q < quads; q++, a += m * GEMM_QUAD, b += GEMM_QUAD_BYTES) {
        int8x16_t y[VECS];
        UNROLL for (unsigned v = 0; v < VECS; v++)
            y[v] = vld1q_s8(b + v * 16);
        UNROLL for (unsigned r = 0; r < m; r++) {
            int8x16_t x = vreinterpretq_s8_s32(vdupq_n_s32(gemm_word(a + r * GEMM_QUAD)));
            UNROLL for (unsigned v = 0; v < VECS; v++)
                sum[r][v] = sdot(sum[r][v], y[v], x);
        }
    }
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned v = 0; v < VECS; v++)
            vst1q_u32(c + r * ldc + v * 4, vreinterpretq_u32_s32(sum[r][v]));
}

TARGET static void tile(const void *a, const int8_t *b, size_t b_stride, size_t quads, unsigned m, unsigned np,
                        uint32_t *c, size_t ldc, const uint32_t *init)
{
    (void)b_stride; /* one panel at a time */
    (void)np;
    switch (m) {
    case 1: block(a, b, quads, 1, c, ldc, init); break;
    case 2: block(a, b, quads, 2, c, ldc, init); break;
    case 3: block(a, b, quads, 3, c, ldc, init); break;
    case 4: block(a, b, quads, 4, c, ldc, init); break;
    case 5: block(a, b, quads, 5, c, ldc, init); break;
    case 6: block(a, b, quads, 6, c, ldc, init); break;
    }
}

const struct gemm_path gemm_path_neon_dot = {.name = "neon-dot", .available = available, .tile = tile,
    .form = GEMM_A_S8, .mr = MR, .nr = 1, .block_quads = 512};

#endif
