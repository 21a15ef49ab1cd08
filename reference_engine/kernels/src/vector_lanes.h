/* SPDX-License-Identifier: Apache-2.0
 *
 * What the vector operations call per level (levels.h).
 */
#ifndef ENGINE_VECTOR_LANES_H
#define ENGINE_VECTOR_LANES_H

#include <stddef.h>
#include <stdint.h>

typedef void ek_map_row(int operation, const float *x, const float *y, float *out, size_t n, float s);
typedef void ek_norm_row(const float *x, const float *weight, float *out, size_t n, float eps);
typedef void ek_softmax_row(const float *x, float *out, size_t n);
typedef int ek_finite_row(const float *x, size_t n);
typedef void ek_rotate_head(float *x, const float *cosines, const float *sines, size_t half);
typedef void ek_to_halves(const float *x, uint16_t *out, size_t n);
typedef void ek_from_halves(const uint16_t *x, float *out, size_t n);

/* GELU of every half float, as ggml's table has it; [65536]. */
const float *vector_gelu_table(void);

#endif
