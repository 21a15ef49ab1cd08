/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums to floats, and the float products.
 */
#include "linear_tile.h"

#include "half.h"
#include "levels.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef float v16 __attribute__((vector_size(64), aligned(4), may_alias));
typedef float v8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float v4 __attribute__((vector_size(16), aligned(4), may_alias));

/* a * b + c with one rounding. */
static ALWAYS_INLINE float fused(float a, float b, float c)
{
#if EK_HAS_FMA
    return __builtin_fmaf(a, b, c);
#else
    /* The product is exact in double; the sum is rounded to odd there, after which rounding to float is right. */
    double product = (double)a * (double)b, wide = c, total = product + wide, part = total - product;
    double error = (product - (total - part)) + (wide - part);
    uint64_t bits;
    memcpy(&bits, &total, sizeof bits);
    if (error != 0.0 && !(bits & 1) && (bits >> 52 & 0x7ff) != 0x7ff)
        bits += (error < 0.0) == (total > 0.0) ? UINT64_MAX : 1;
    memcpy(&total, &bits, sizeof total);
    return (float)total;
#endif
}

static ALWAYS_INLINE int32_t narrowed(uint32_t sum, const int narrow)
{
    int32_t value = (int32_t)sum;
    if (narrow == 1)
        return (int16_t)(uint16_t)(sum & 0xffffu);
    return narrow == 2 ? value > 32767 ? 32767 : value < -32768 ? -32768 : value : value;
}

static ALWAYS_INLINE float added(float before, float sum, float factor, const int first, const int fma)
{
    if (fma)
        return first ? sum * factor : fused(sum, factor, before); /* a fused product with 0 is the product */
    return (first ? 0.0f : before) + sum * factor;
}

static ALWAYS_INLINE void collect(const uint32_t *sums, size_t sum_stride, size_t m, size_t n, const float *scale_a,
                                  const float *scale_b, float inverse, float *out, size_t out_stride, const int first,
                                  const int fma, const int narrow)
{
    for (size_t r = 0; r < m; r++) {
        const uint32_t *sum = sums + r * sum_stride;
        float *to = out + r * out_stride, a = scale_a[r];
        for (size_t c = 0; c < n; c++)
            to[c] = added(to[c], (float)narrowed(sum[c], narrow), (a * scale_b[c]) * inverse, first, fma);
    }
}

void EK_AT(ek_tile_collect)(const uint32_t *sums, size_t sum_stride, size_t m, size_t n, const float *scale_a,
                            const float *scale_b, const ek_collecting *how, float *out, size_t out_stride)
{
#define CASE(first_, fma_, narrow_) \
    collect(sums, sum_stride, m, n, scale_a, scale_b, how->inverse, out, out_stride, first_, fma_, narrow_)
    if (how->narrow == 0) {
        if (how->first && how->fma)
            CASE(1, 1, 0);
        else if (how->first)
            CASE(1, 0, 0);
        else if (how->fma)
            CASE(0, 1, 0);
        else
            CASE(0, 0, 0);
    } else {
        CASE(how->first, how->fma, how->narrow);
    }
#undef CASE
}

void EK_AT(ek_tile_collect_half)(const float *sums, size_t n, const ek_collecting *how, float *out)
{
    for (size_t c = 0; c < n; c++)
        out[c] = added(out[c], sums[c], how->inverse, how->first, how->fma);
}

static ALWAYS_INLINE void half_tile(const float *a, size_t a_stride, const size_t m, const float *panel,
                                    size_t length, float sums[][16])
{
    v16 sum[4] = {{0}, {0}, {0}, {0}};
    for (size_t i = 0; i < length; i++) {
        const v16 column = *(const v16 *)(const void *)(panel + i * 16);
        for (size_t r = 0; r < m; r++)
            sum[r] += a[r * a_stride + i] * column;
    }
    memcpy(sums, sum, m * sizeof *sums);
}

void EK_AT(ek_tile_half)(const float *a, size_t a_stride, size_t m, const float *panel, size_t length,
                         float sums[][16])
{
    switch (m) {
    case 1: half_tile(a, a_stride, 1, panel, length, sums); break;
    case 2: half_tile(a, a_stride, 2, panel, length, sums); break;
    case 3: half_tile(a, a_stride, 3, panel, length, sums); break;
    default: half_tile(a, a_stride, 4, panel, length, sums); break;
    }
}

void EK_AT(ek_row_from_half)(const uint16_t *x, size_t n, float *out)
{
    size_t i = 0;
#if defined(__F16C__) /* exact as well, and faster; only NaN could differ, and none comes here */
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(x + i))));
#endif
    for (; i < n; i++)
        out[i] = ek_half_to_float(x[i]);
}

/* 16 to 8 to 4 to 2 to 1, lane i with lane i + half. By address: a wide vector by value has no fixed calling order. */
static ALWAYS_INLINE float fold(const v16 *lanes)
{
    v8 eight[2];
    v4 four[2], sum;
    memcpy(eight, lanes, sizeof eight);
    eight[0] += eight[1];
    memcpy(four, &eight[0], sizeof four);
    sum = four[0] + four[1];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

/* The sums of a tile stay in registers: 16 (avx512), 4 of two registers each elsewhere. */
#if defined(__AVX512F__)
enum { TILE_M = 4, TILE_N = 4 };
#elif defined(__AVX2__)
enum { TILE_M = 2, TILE_N = 2 };
#else
enum { TILE_M = 1, TILE_N = 2 };
#endif

static ALWAYS_INLINE void dot_tile(const float *a, size_t a_stride, const int m, const float *w, size_t w_stride,
                                   const int n, size_t lanes, float *out, size_t out_stride)
{
    v16 sum[TILE_M][TILE_N];
    for (int r = 0; r < m; r++)
        for (int c = 0; c < n; c++)
            sum[r][c] = (v16){0};
    for (size_t i = 0; i < lanes; i += 16) {
        v16 x[TILE_M], y[TILE_N];
        for (int r = 0; r < m; r++)
            x[r] = *(const v16 *)(const void *)(a + (size_t)r * a_stride + i);
        for (int c = 0; c < n; c++)
            y[c] = *(const v16 *)(const void *)(w + (size_t)c * w_stride + i);
        for (int r = 0; r < m; r++)
            for (int c = 0; c < n; c++)
                sum[r][c] += x[r] * y[c];
    }
    for (int r = 0; r < m; r++)
        for (int c = 0; c < n; c++)
            out[(size_t)r * out_stride + (size_t)c] = fold(&sum[r][c]);
}

void EK_AT(ek_tile_dot)(const float *a, size_t a_stride, size_t m, const float *w, size_t w_stride, size_t n,
                        size_t lanes, float *out, size_t out_stride)
{
    for (size_t c = 0; c < n; c += TILE_N)
        for (size_t r = 0; r < m; r += TILE_M) {
            const float *x = a + r * a_stride, *y = w + c * w_stride;
            float *to = out + r * out_stride + c;
            if (m - r >= TILE_M && n - c >= TILE_N)
                dot_tile(x, a_stride, TILE_M, y, w_stride, TILE_N, lanes, to, out_stride);
            else if (n - c >= TILE_N)
                for (size_t i = r; i < m; i++, x += a_stride, to += out_stride)
                    dot_tile(x, a_stride, 1, y, w_stride, TILE_N, lanes, to, out_stride);
            else
                for (size_t i = r; i < m && i < r + TILE_M; i++, x += a_stride, to += out_stride)
                    for (size_t j = c; j < n; j++)
                        dot_tile(x, a_stride, 1, w + j * w_stride, w_stride, 1, lanes, to + (j - c), out_stride);
        }
}
