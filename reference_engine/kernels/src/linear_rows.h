/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic on one row, by level. Private. Every function gives the same bits at every level.
 */
#ifndef ENGINE_LINEAR_ROWS_H
#define ENGINE_LINEAR_ROWS_H

#include <stddef.h>
#include <stdint.h>

/* How numbers become integers. most: 127 or 7. four: int4, clamped even where clamp is off. */
typedef struct {
    int32_t most;
    int clamp, four;
} ek_rounding;

/* Elements at +-most, and elements that rounding put beyond. */
typedef struct {
    int64_t rim, clipped;
} ek_counts;

/* Bits of the largest magnitude; at or above 0x7f800000 where a NaN or an infinity is among them. */
typedef uint32_t ek_row_amax(const float *x, size_t n);
/* q = x * inverse, rounded half away from zero. amax: no magnitude in x is above it. */
typedef void ek_row_quantize(const float *x, size_t n, float inverse, float amax, const ek_rounding *how, int8_t *q,
                             ek_counts *counts);
/* out[k_op] = x[k] times signs, then zeros, transformed in blocks; block is a power of two that divides k_op. */
typedef void ek_row_transform(const float *x, const int8_t *signs, size_t k, size_t k_op, size_t block, float *out);
typedef void ek_row_multiply(const float *x, const float *y, size_t n, float *out);
/* Rank one: v[i] = max(v[i], max(|x[i]| * clip / most, 1e-7) * inverse). */
typedef void ek_row_share(const float *x, size_t n, float clip, float most, float inverse, float *v);
/* Rank one: scale of element i is max(v[i] * u, 1e-7). */
typedef void ek_row_rank_one(const float *x, size_t n, float u, const float *v, const ek_rounding *how, int8_t *q);
typedef void ek_row_to_half(const float *x, size_t n, uint16_t *out);
/* To half and back: what a product of halves sees. */
typedef void ek_row_through_half(const float *x, size_t n, float *out);

#endif
