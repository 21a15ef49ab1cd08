/* SPDX-License-Identifier: Apache-2.0
 *
 * x86-64 with AVX2: pmaddwd on int16. (pmaddubsw would saturate, so it is not exact.) Of the 4 K values of a column
 * the even ones and the odd ones are widened by shifts inside their 32-bit lane; A comes widened and in that order.
 */
#include "gemm_path.h"

#if defined(__x86_64__)

#include "gemm_tile.h"

#include <immintrin.h>

#define TARGET __attribute__((target("avx2")))
enum { MR = 4, HALVES = 2 }; /* 8 sums, 4 widened halves of B, 2 of A: 14 of 16 registers */

static int available(void)
{
    return __builtin_cpu_supports("avx2");
}

TARGET static ALWAYS_INLINE void block(const uint8_t *a, const int8_t *b, size_t quads, const unsigned m, uint32_t *c,
                                       size_t ldc, const uint32_t *init)
{
    __m256i sum[MR][HALVES];
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned h = 0; h < HALVES; h++)
            sum[r][h] = _mm256_loadu_si256((const __m256i *)(init ? init : c + r * ldc) + h);
    for (size_t q = 0; q < quads; q++, a += m * 8, b += GEMM_QUAD_BYTES) {
        __m256i even[HALVES], odd[HALVES];
        UNROLL for (unsigned h = 0; h < HALVES; h++) {
            __m256i y = _mm256_load_si256((const __m256i *)b + h);
            even[h] = _mm256_srai_epi16(_mm256_slli_epi16(y, 8), 8);
            odd[h] = _mm256_srai_epi16(y, 8);
        }
        UNROLL for (unsigned r = 0; r < m; r++) {
            __m256i x_even = _mm256_set1_epi32(gemm_word(a + r * 8));
            __m256i x_odd = _mm256_set1_epi32(gemm_word(a + r * 8 + 4));
            UNROLL for (unsigned h = 0; h < HALVES; h++) {
                sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(even[h], x_even));
                sum[r][h] = _mm256_add_epi32(sum[r][h], _mm256_madd_epi16(odd[h], x_odd));
            }
        }
    }
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned h = 0; h < HALVES; h++)
            _mm256_storeu_si256((__m256i *)(c + r * ldc) + h, sum[r][h]);
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
    }
}

const struct gemm_path gemm_path_avx2 = {.name = "avx2", .available = available, .tile = tile, .form = GEMM_A_S16_EO,
    .mr = MR, .nr = 1, .block_quads = 512};

#endif
