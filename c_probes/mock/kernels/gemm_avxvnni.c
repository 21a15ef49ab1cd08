/* SPDX-License-Identifier: Apache-2.0
 *
 * x86-64 with AVX-VNNI and no AVX-512: vpdpbusd on 32 bytes, 8 columns by 4 K values at a time. Unsigned A as in
 * the AVX512-VNNI path.
 *
 * GEMM_AVXVNNI_FROM_AVX512 builds the same code on the 256-bit instruction of AVX512-VNNI, so that a CPU with
 * that and without AVX-VNNI can run it in a test; the two instructions differ in encoding only.
 */
#include "gemm_path.h"

#if defined(__x86_64__)

#include "gemm_tile.h"

#if defined(GEMM_AVXVNNI_FROM_AVX512) || defined(__clang__) || __GNUC__ >= 11

#include <cpuid.h>
#include <immintrin.h>

enum { MR = 6, HALVES = 2 }; /* 12 of 16 registers hold sums */

#if defined(GEMM_AVXVNNI_FROM_AVX512)
#define TARGET __attribute__((target("avx2,avx512vl,avx512vnni")))
#define DPBUSD _mm256_dpbusd_epi32

static int available(void)
{
    return __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
#else
#define TARGET __attribute__((target("avx2,avxvnni")))
#define DPBUSD _mm256_dpbusd_avx_epi32

/* AVX-VNNI is CPUID leaf 7, subleaf 1, EAX bit 4; the AVX2 test covers the state the kernel must save. */
static int available(void)
{
    unsigned a, b, c, d;
    return __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 0, &a, &b, &c, &d) && a >= 1 &&
           __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
}
#endif

TARGET static ALWAYS_INLINE void block(const uint8_t *a, const int8_t *b, size_t quads, const unsigned m, uint32_t *c,
                                       size_t ldc, const uint32_t *init)
{
    __m256i sum[MR][HALVES];
    UNROLL for (unsigned r = 0; r < m; r++)
        UNROLL for (unsigned h = 0; h < HALVES; h++)
            sum[r][h] = _mm256_loadu_si256((const __m256i *)(init ? init : c + r * ldc) + h);
    for (size_t q = 0; q < quads; q++, a += m * GEMM_QUAD, b += GEMM_QUAD_BYTES) {
        __m256i y[HALVES];
        UNROLL for (unsigned h = 0; h < HALVES; h++)
            y[h] = _mm256_load_si256((const __m256i *)b + h);
        UNROLL for (unsigned r = 0; r < m; r++) {
            __m256i x = _mm256_set1_epi32(gemm_word(a + r * GEMM_QUAD));
            UNROLL for (unsigned h = 0; h < HALVES; h++)
                sum[r][h] = DPBUSD(sum[r][h], x, y[h]);
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
    case 5: block(a, b, quads, 5, c, ldc, init); break;
    case 6: block(a, b, quads, 6, c, ldc, init); break;
    }
}

#else /* a compiler that does not know AVX-VNNI */

static int available(void)
{
    return 0;
}
enum { MR = 1 };
#define tile NULL

#endif

const struct gemm_path gemm_path_avxvnni = {.name = "avx-vnni", .available = available, .tile = tile,
    .form = GEMM_A_U8, .mr = MR, .nr = 1, .block_quads = 1024};

#endif
