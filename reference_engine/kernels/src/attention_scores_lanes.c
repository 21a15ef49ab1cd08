/* SPDX-License-Identifier: Apache-2.0
 *
 * Scores of a tile: every position of the tile is a vector lane, and the 16 lanes of the dot product are 16 sums, made
 * in the order in which they fold (0 + 8, 4 + 12, ...), so that few of them are alive at a time.
 */
#include "attention_lanes.h"
#include "levels.h"
#include "math_lanes.h"

/* The sum of lane l starts with its first product: that a sum from +0 could not be -0 is lost in exp. */
VF_INLINE void lane(vf *sums, const float *tile, const float *q, size_t rows, size_t dim, size_t l)
{
    vf k = l < dim ? vf_load(tile + l * KV_TILE) : (vf){0};
#pragma GCC unroll 4
    for (size_t r = 0; r < rows; r++)
        sums[r] = l < dim ? k * q[r * dim + l] : (vf){0};
    for (size_t i = l + KV_TILE; i < dim; i += KV_TILE) {
        k = vf_load(tile + i * KV_TILE);
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            sums[r] += k * q[r * dim + i];
    }
}

#define FOLD(name, part, distance) \
    VF_INLINE void name(vf *sums, const float *tile, const float *q, size_t rows, size_t dim, size_t l) \
    { \
        vf other[ATTENTION_ROWS]; \
        part(sums, tile, q, rows, dim, l); \
        part(other, tile, q, rows, dim, l + (distance)); \
        _Pragma("GCC unroll 4") for (size_t r = 0; r < rows; r++) sums[r] += other[r]; \
    }
FOLD(fold_2, lane, 8)
FOLD(fold_4, fold_2, 4)
FOLD(fold_8, fold_4, 2)
FOLD(fold_16, fold_8, 1)

VF_INLINE void score(const float *tile, const float *q, size_t rows, size_t dim, float scale, float softcap,
                     float *scores, size_t stride)
{
    for (size_t part = 0; part < KV_TILE; part += VF_LANES) {
        vf sums[ATTENTION_ROWS];
        fold_16(sums, tile + part, q, rows, dim, 0);
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
            vf_store(scores + r * stride + part, sums[r] * scale);
    }
    if (softcap != 0.0f) {
        float inverse = 1.0f / softcap;
        for (size_t r = 0; r < rows; r++)
            for (size_t part = 0; part < KV_TILE; part += VF_LANES) {
                float *at = scores + r * stride + part;
                vf_store(at, vf_tanh(vf_load(at) * inverse) * softcap);
            }
    }
}

void EK_AT(ek_score_tile)(const float *tile, const float *q, size_t rows, size_t dim, float scale, float softcap,
                          float *scores, size_t stride)
{
    switch (rows) {
    case 1: score(tile, q, 1, dim, scale, softcap, scores, stride); break;
    case 2: score(tile, q, 2, dim, scale, softcap, scores, stride); break;
    case 3: score(tile, q, 3, dim, scale, softcap, scores, stride); break;
    default: score(tile, q, 4, dim, scale, softcap, scores, stride); break;
    }
}
