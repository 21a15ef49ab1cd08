/* SPDX-License-Identifier: Apache-2.0
 *
 * Quantisers and the Hadamard transform of one row. Plain loops that compilers vectorise without reassociation: the
 * only reductions are maxima and counts of integers.
 */
#include "linear_rows.h"

#include "half.h"
#include "levels.h"

#include <math.h>

static const float least_scale = 1e-7f;

uint32_t EK_AT(ek_row_amax)(const float *x, size_t n)
{
    int32_t most = 0; /* as signed: what the sign bit hid is gone, and signed maxima are vectorised at every level */
    for (size_t i = 0; i < n; i++) {
        int32_t bits = (int32_t)(ek_bits(x[i]) & 0x7fffffffu);
        most = bits > most ? bits : most;
    }
    return (uint32_t)most;
}

/* v is a float of at most 2^23: truncation and the rest are exact. */
static inline int32_t round_small(float v)
{
    int32_t whole = (int32_t)v;
    float rest = v - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Any float: beyond int32 to its ends, NaN to 0, as fcvtas does. */
static int32_t round_any(float v)
{
    if (!(v == v))
        return 0;
    if (v >= 2147483648.0f)
        return INT32_MAX;
    if (v <= -2147483648.0f)
        return INT32_MIN;
    return v < 8388608.0f && v > -8388608.0f ? round_small(v) : (int32_t)v;
}

static inline int32_t hold(int32_t whole, int32_t most)
{
    return whole > most ? most : whole < -most ? -most : whole;
}

static inline int32_t narrow(int32_t whole, int32_t most, int clamp, int four)
{
    if (!clamp)
        whole = (int8_t)(uint8_t)((uint32_t)whole & 255u);
    return clamp || four ? hold(whole, most) : whole;
}

/* Constant `clamp` and `four` at every call. */
static inline __attribute__((always_inline)) void quantize(const float *x, size_t n, float inverse, int32_t most,
                                                           const int clamp, const int four, int8_t *q, ek_counts *c)
{
    int32_t rim = 0, clipped = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t whole = round_small(x[i] * inverse);
        clipped += (whole > most) | (whole < -most);
        whole = narrow(whole, most, clamp, four);
        rim += (whole == most) | (whole == -most);
        q[i] = (int8_t)whole;
    }
    c->rim += rim;
    c->clipped += clipped;
}

/* The common case: no element can round beyond `most`. */
static inline __attribute__((always_inline)) void quantize_inside(const float *x, size_t n, float inverse, int32_t most,
                                                                  int8_t *q, ek_counts *c)
{
    int32_t rim = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t whole = round_small(x[i] * inverse);
        rim += (whole == most) | (whole == -most);
        q[i] = (int8_t)whole;
    }
    c->rim += rim;
}

static void quantize_any(const float *x, size_t n, float inverse, const ek_rounding *how, int8_t *q, ek_counts *c)
{
    for (size_t i = 0; i < n; i++) {
        int32_t whole = round_any(x[i] * inverse);
        c->clipped += (whole > how->most) | (whole < -how->most);
        whole = narrow(whole, how->most, how->clamp, how->four);
        c->rim += (whole == how->most) | (whole == -how->most);
        q[i] = (int8_t)whole;
    }
}

void EK_AT(ek_row_quantize)(const float *x, size_t n, float inverse, float amax, const ek_rounding *how, int8_t *q,
                            ek_counts *counts)
{
    float largest = amax * inverse; /* rounding is monotonic: no element's product is above */
    if (largest < (float)how->most + 0.5f)
        quantize_inside(x, n, inverse, how->most, q, counts);
    else if (!(largest < 8388608.0f))
        quantize_any(x, n, inverse, how, q, counts);
    else if (how->clamp)
        quantize(x, n, inverse, how->most, 1, 0, q, counts);
    else if (how->four)
        quantize(x, n, inverse, how->most, 0, 1, q, counts);
    else
        quantize(x, n, inverse, how->most, 0, 0, q, counts);
}

/* Butterflies at one distance; a constant short one becomes shuffles. */
static inline __attribute__((always_inline)) void butterflies(float *x, size_t n, const size_t distance)
{
    for (size_t at = 0; at < n; at += 2 * distance) {
        float *left = x + at, *right = left + distance;
        for (size_t i = 0; i < distance; i++) {
            float a = left[i], b = right[i];
            left[i] = a + b;
            right[i] = a - b;
        }
    }
}

void EK_AT(ek_row_transform)(const float *x, const int8_t *signs, size_t k, size_t k_op, size_t block, float *out)
{
    for (size_t i = 0; i < k; i++)
        out[i] = x[i] * (float)signs[i];
    for (size_t i = k; i < k_op; i++)
        out[i] = 0.0f;
    if (block > 1)
        butterflies(out, k_op, 1);
    if (block > 2)
        butterflies(out, k_op, 2);
    if (block > 4)
        butterflies(out, k_op, 4);
    if (block > 8)
        butterflies(out, k_op, 8);
    for (size_t distance = 16; distance < block; distance *= 2)
        butterflies(out, k_op, distance);
}

void EK_AT(ek_row_multiply)(const float *x, const float *y, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] * y[i];
}

static inline float larger(float a, float b)
{
    return a > b ? a : b;
}

void EK_AT(ek_row_share)(const float *x, size_t n, float clip, float most, float inverse, float *v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = larger(v[i], larger(fabsf(x[i]) * clip / most, least_scale) * inverse);
}

void EK_AT(ek_row_rank_one)(const float *x, size_t n, float u, const float *v, const ek_rounding *how, int8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        float scale = larger(v[i] * u, least_scale);
        q[i] = (int8_t)narrow(round_any(x[i] * (1.0f / scale)), how->most, how->clamp, how->four);
    }
}

void EK_AT(ek_row_to_half)(const float *x, size_t n, uint16_t *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ek_float_to_half(x[i]);
}

void EK_AT(ek_row_through_half)(const float *x, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = ek_half_to_float(ek_float_to_half(x[i]));
}
