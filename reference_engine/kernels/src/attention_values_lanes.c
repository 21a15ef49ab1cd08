/* SPDX-License-Identifier: Apache-2.0
 *
 * Exponentials of a row of scores, and sums of weighted values in rising position.
 */
#include "attention_lanes.h"
#include "levels.h"
#include "math_lanes.h"

/* Vectors of one row's sums that stay in registers: rows * VECTORS of them. */
#if VF_LANES == 16 || defined(__aarch64__)
enum { VECTORS = 4 };
#else
enum { VECTORS = 2 };
#endif

VF_INLINE void mix(const float *v, const float *weights, size_t stride, size_t rows, size_t n, size_t dim, float *sums,
                   size_t vectors)
{
    vf total[ATTENTION_ROWS][VECTORS];
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t c = 0; c < vectors; c++)
            total[r][c] = vf_load(sums + r * dim + c * VF_LANES);
    for (size_t j = 0; j < n; j++) {
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (size_t c = 0; c < vectors; c++)
                total[r][c] += vf_load(v + j * dim + c * VF_LANES) * weights[r * stride + j];
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t c = 0; c < vectors; c++)
            vf_store(sums + r * dim + c * VF_LANES, total[r][c]);
}

VF_INLINE void mix_all(const float *v, const float *weights, size_t stride, size_t rows, size_t n, size_t dim,
                       float *sums)
{
    size_t d = 0;
    for (; d + VECTORS * VF_LANES <= dim; d += VECTORS * VF_LANES)
        mix(v + d, weights, stride, rows, n, dim, sums + d, VECTORS);
    for (; d + VF_LANES <= dim; d += VF_LANES)
        mix(v + d, weights, stride, rows, n, dim, sums + d, 1);
    if (d < dim)
        for (size_t r = 0; r < rows; r++)
            for (size_t j = 0; j < n; j++)
                for (size_t i = d; i < dim; i++)
                    sums[r * dim + i] += v[j * dim + i] * weights[r * stride + j];
}

void EK_AT(ek_mix_rows)(const float *v, const float *weights, size_t stride, size_t rows, size_t n, size_t dim,
                        float *sums)
{
    switch (rows) {
    case 1: mix_all(v, weights, stride, 1, n, dim, sums); break;
    case 2: mix_all(v, weights, stride, 2, n, dim, sums); break;
    case 3: mix_all(v, weights, stride, 3, n, dim, sums); break;
    default: mix_all(v, weights, stride, 4, n, dim, sums); break;
    }
}

float EK_AT(ek_row_max)(const float *x, size_t n)
{
    vf largest = vf_load(x);
    for (size_t i = VF_LANES; i < n; i += VF_LANES)
        largest = vf_max(vf_load(x + i), largest);
    float highest = largest[0];
    for (size_t l = 1; l < VF_LANES; l++)
        highest = largest[l] > highest ? largest[l] : highest;
    return highest;
}

void EK_AT(ek_row_exp)(float *x, size_t n, float highest, float *lanes)
{
    vf total[KV_TILE / VF_LANES];
    memcpy(total, lanes, sizeof total);
    for (size_t i = 0; i < n; i += KV_TILE)
        for (size_t part = 0; part < KV_TILE / VF_LANES; part++) {
            vf e = vf_exp(vf_load(x + i + part * VF_LANES) - highest);
            vf_store(x + i + part * VF_LANES, e);
            total[part] += e;
        }
    memcpy(lanes, total, sizeof total);
}

void EK_AT(ek_row_divide)(const float *x, float divisor, float *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = x[i] / divisor;
}
