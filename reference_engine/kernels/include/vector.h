/* SPDX-License-Identifier: Apache-2.0
 *
 * Vector operations of a forward pass; what each computes, and in which order, is stated in
 * reference_engine/vector_ops.py and vector_ops_numpy.py, whose bits these functions give.
 */
#ifndef ENGINE_VECTOR_H
#define ENGINE_VECTOR_H

#include <stddef.h>
#include <stdint.h>

/* cdef begin */
enum {
    EK_EXP, EK_TANH, EK_SIGMOID, EK_SILU, EK_GELU, EK_SOFTPLUS, EK_GELU_TABLE, EK_SCALE, EK_SOFTCAP,
    EK_ADD, EK_MUL, EK_SILU_MUL, EK_GELU_MUL, EK_GELU_TABLE_MUL
};

/* out[i] = operation(x[i], y[i]) for i below n; from EK_ADD on there is a y, which repeats after `period` values
 * (n is a multiple of it). s: the factor of EK_SCALE, the cap of EK_SOFTCAP. out may be x or y. */
void ek_map(int operation, const float *x, const float *y, float *out, size_t n, size_t period, float s, int threads);
/* Rows of n values: x / sqrt(mean of squares + eps), times weight[n] unless NULL. out may be x. */
void ek_rms_norm(const float *x, const float *weight, float *out, size_t rows, size_t n, float eps, int threads);
/* The same of x + y; the sum replaces x. */
void ek_add_rms_norm(float *x, const float *y, const float *weight, float *out, size_t rows, size_t n, float eps,
                     int threads);
/* x[rows][heads][dim] in place; cosines and sines [rows][half]. */
void ek_rope(float *x, const float *cosines, const float *sines, size_t rows, size_t heads, size_t dim, size_t half,
             int neox, int threads);
/* Cosines and sines [rows][half] of start[row] * step^i / factors[i], times freq_scale; mix[half] (or NULL) is how much
 * of the unscaled angle YaRN takes. */
void ek_rope_tables(const int64_t *positions, size_t rows, size_t half, float step, float freq_scale,
                    const float *factors, const float *mix, float amplitude, float *cosines, float *sines);
void ek_log_softmax(const float *x, float *out, size_t rows, size_t n, int threads);
/* 1 when no value is NaN or infinite. */
int ek_check_finite(const float *x, size_t n, int threads);
/* cdef end */

#endif
