/* SPDX-License-Identifier: Apache-2.0
 *
 * x86-64 with AVX512-VNNI: vpdpbusd on 64 bytes, 16 columns by 4 K values at a time. It wants one factor unsigned:
 * A carries +128 and the product starts from -128 times the column sums of B, which is exact modulo 2^32.
 */
#include "gemm_path.h"

#if defined(__x86_64__)

#include "gemm_tile.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512vnni")))
enum { MR = 12, NR = 2 }; /* 24 of 32 registers hold sums */

static int available(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vnni");
}

/* m rows by np panels, both constant at every call. No software prefetch: measured on Zen 4 it slowed the
 * single-row product, at every distance from 0.5 to 16 KiB. */
TARGET static ALWAYS_INLINE void block(const uint8_t *a, const int8_t *b, size_t b_stride, size_t quads,
                                       const unsigned m, const unsigned np, uint32_t *c, size_t ldc,
                                       const uint32_t *init)
{
    __m512i sum[MR][NR];
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned p = 0; p < np; p++)
            sum[r][p] = _mm512_loadu_si512((init ? init : c + r * ldc) + p * GEMM_PANEL);
    for (size_t q = 0; q < quads; q++, a += m * GEMM_QUAD, b += GEMM_QUAD_BYTES) {
        __m512i y[NR];
        UNROLL for (unsigned p = 0; p < np; p++)
            y[p] = _mm512_load_si512(b + p * b_stride);
        UNROLL for (unsigned r = 0; r < m; r++) {
            __m512i x = _mm512_set1_epi32(gemm_word(a + r * GEMM_QUAD));
            UNROLL for (unsigned p = 0; p < np; p++)
                sum[r][p] = _mm512_dpbusd_epi32(sum[r][p], x, y[p]);
        }
    }
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned p = 0; p < np; p++)
            _mm512_storeu_si512(c + r * ldc + p * GEMM_PANEL, sum[r][p]);
}

TARGET static void tile(const void *a, const int8_t *b, size_t b_stride, size_t quads, unsigned m, unsigned np,
                        uint32_t *c, size_t ldc, const uint32_t *init)
{
#define ROWS(m_)                                             \
    case m_:                                                 \
        if (np == NR)                                        \
            block(a, b, b_stride, quads, m_, NR, c, ldc, init); \
        else                                                 \
            block(a, b, b_stride, quads, m_, 1, c, ldc, init); \
        break;
    switch (m) {
        ROWS(1) ROWS(2) ROWS(3) ROWS(4) ROWS(5) ROWS(6) ROWS(7) ROWS(8) ROWS(9) ROWS(10) ROWS(11) ROWS(12)
    }
#undef ROWS
}

/* The long K block pays: writing a tile of C costs more (its rows share cache sets) than B from L2. */
const struct gemm_path gemm_path_avx512vnni = {.name = "avx512-vnni", .available = available, .tile = tile,
    .form = GEMM_A_U8, .mr = MR, .nr = NR, .block_quads = 1024};

#endif
