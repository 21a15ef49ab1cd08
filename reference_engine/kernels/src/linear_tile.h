/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on one tile of a product, by level. Private.
 */
#ifndef ENGINE_LINEAR_TILE_H
#define ENGINE_LINEAR_TILE_H

#include <stddef.h>
#include <stdint.h>

/* How sums become floats: out = before + (float)sum * (scale_a * scale_b * inverse), before 0 in the first K part. */
typedef struct {
    float inverse;    /* 1 / divisor, a power of two: the same bits as a division */
    int first, fma;
    int narrow;       /* int32 sums first become int16: 0 no, 1 wrap, 2 saturate */
} ek_collecting;

/* m rows by n columns of int32 sums (row stride sum_stride). */
typedef void ek_tile_collect(const uint32_t *sums, size_t sum_stride, size_t m, size_t n, const float *scale_a,
                             const float *scale_b, const ek_collecting *how, float *out, size_t out_stride);
/* One row of float32 sums, all scales 1. */
typedef void ek_tile_collect_half(const float *sums, size_t n, const ek_collecting *how, float *out);
/* sums[m][16] = over i in rising order a[m][i] * panel[i][16], from +0; both are halves, widened. m is 1 to 4. */
typedef void ek_tile_half(const float *a, size_t a_stride, size_t m, const float *panel, size_t length,
                          float sums[][16]);
typedef void ek_row_from_half(const uint16_t *x, size_t n, float *out);
/* out[m][n] = 16-lane dot products of rows a and w (strides in floats, both padded with +0 to whole lanes). */
typedef void ek_tile_dot(const float *a, size_t a_stride, size_t m, const float *w, size_t w_stride, size_t n,
                         size_t lanes, float *out, size_t out_stride);

#endif
