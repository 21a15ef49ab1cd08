/* SPDX-License-Identifier: Apache-2.0
 *
 * What attention calls per level (levels.h). Rows of queries, scores and sums stand one after the other.
 */
#ifndef ENGINE_ATTENTION_LANES_H
#define ENGINE_ATTENTION_LANES_H

#include "kv_lanes.h"

enum { ATTENTION_ROWS = 4, ATTENTION_BLOCK = 64 };

/* Scores of up to ATTENTION_ROWS queries [rows][dim] with a tile of keys [dim][16]: scores[row * stride + 0..15]. */
typedef void ek_score_tile(const float *tile, const float *q, size_t rows, size_t dim, float scale, float softcap,
                           float *scores, size_t stride);
/* sums[row * dim + d] += weights[row * stride + j] * v[j * dim + d] for j rising below n. */
typedef void ek_mix_rows(const float *v, const float *weights, size_t stride, size_t rows, size_t n, size_t dim,
                         float *sums);
/* n is a multiple of 16. */
typedef float ek_row_max(const float *x, size_t n);
/* x = exp(x - highest); lanes[l] += x[l], x[l + 16], ... */
typedef void ek_row_exp(float *x, size_t n, float highest, float *lanes);
typedef void ek_row_divide(const float *x, float divisor, float *out, size_t n);

#endif
