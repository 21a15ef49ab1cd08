/* SPDX-License-Identifier: Apache-2.0
 *
 * Matrix products of the engine: weights in the integers of an NPU pipeline, and weights left as the file has them.
 *
 * Activations x are float32 [M, n_in], results float32 [M, n_out], rows adjacent. `threads` is the most threads that
 * work, the caller included. All functions may be called from several threads at once.
 */
#ifndef ENGINE_LINEAR_H
#define ENGINE_LINEAR_H

#include <stdint.h>

/* cdef begin */
/* How a weight becomes integers (backends/pipeline.py says what the fields mean). The pointers are read during
 * ek_weight_new only. */
typedef struct {
    int32_t bits;        /* 8, 4 or 16 */
    int32_t scale_kind;  /* 0 channel, 1 segment, 2 tensor, 3 rank one */
    int32_t clamp, fma;
    int32_t saturate16;  /* int4: what an int16 accumulator does with an overflow; 0 wraps */
    float a_clip, b_clip;
    int64_t n_in, n_out, k_op;
    int64_t block;         /* of the Hadamard transform; 1 without */
    const int8_t *signs;   /* [k_op], or NULL without a transform */
    int32_t k_parts, n_parts;
    const int64_t *k_cuts; /* [k_parts + 1], from 0 to k_op */
    const int64_t *n_cuts; /* [n_parts + 1], from 0 to n_out */
} ek_recipe;

typedef struct ek_weight ek_weight;

/* Memory for the weights of one model, in chunks of so many bytes (0: each piece apart). It lives until its maker and
 * every weight in it have freed it. */
typedef struct ek_arena ek_arena;
ek_arena *ek_arena_new(int64_t chunk);
void ek_arena_free(ek_arena *arena);

/* A weight without content, its memory in the arena (NULL: one of its own); NULL when out of memory. It is filled by passes over all rows, each in any order and cut;
 * rows of one pass may come in several calls. */
ek_weight *ek_weight_new(const ek_recipe *recipe, ek_arena *arena);
void ek_weight_free(ek_weight *weight);
int ek_weight_passes(const ek_weight *weight);
/* Rows `first` to first + count of the tensor. type is a ggml number that ek_dequant_known knows. -1 when all went
 * well, -2 when out of memory, else the number of the first row that holds a NaN or an infinity. */
int64_t ek_weight_feed(ek_weight *weight, int pass, int type, const uint8_t *rows, int64_t row_bytes, int64_t first,
                       int64_t count, int threads);
/* After the last row of a pass. */
void ek_weight_settle(ek_weight *weight, int pass);
/* Scale of each output channel in K part k: out float32 [n_out]. */
void ek_weight_scales(const ek_weight *weight, int k, float *out);
/* Rank one: v of K part k and N part n, out float32 [length of the K part]. */
void ek_weight_fold(const ek_weight *weight, int k, int n, float *out);
/* The integers of K part k, rows n0 to n1, row by row: out int8 (bits 16: uint16 of fp16) [n1 - n0, length of part]. */
void ek_weight_unpack(const ek_weight *weight, int k, int64_t n0, int64_t n1, void *out);
/* Bytes held. */
int64_t ek_weight_bytes(const ek_weight *weight);

/* outs[i] = x times weights[i], for `count` weights (at most 8) that take the same prepared activation: the same n_in
 * and K cuts, and neither a transform nor rank-one scales where count is above 1. counters[i] int64 [5] is added to:
 * calls, rows, quantised elements, those at the rim, those clipped.
 * -1 when all went well, -2 when out of memory, else the first row of x that holds a NaN or an infinity. */
int64_t ek_linear_quantized(const ek_weight *const *weights, float *const *outs, int64_t *const *counters, int count,
                            const float *x, int64_t M, int threads);

/* The phases of the same, one by one. Activation number a (K part, with rank-one scales N part * K parts + K part):
 * q int8 (bits 16: uint16) [M, length], scale float32 [M]. Return values as above. */
int64_t ek_linear_prepare(const ek_weight *weight, int a, const float *x, int64_t M, void *q, float *scale,
                          int64_t *counter, int threads);

/* Activation number a times its part of the weight: all columns of its N part. sums int32 (bits 16: float32)
 * [M, columns], not yet narrowed to int16. -1, or -2 when out of memory. */
int64_t ek_linear_sums(const ek_weight *weight, int a, const void *q, int64_t M, void *sums, int threads);
/* Columns n0 to n1 of out [M, n_out]: K part 0 writes, later ones add. sums int32 (int4: already narrowed; bits 16:
 * float32) [M, n1 - n0]. */
void ek_linear_collect(const ek_weight *weight, int k, int64_t n0, int64_t n1, const void *sums, const float *scale,
                       int64_t M, float *out, int threads);

/* out[M, n] = x[M, k] times w[n, k] transposed, w of a ggml type. Order of sums: backends/float_product.py.
 * -1 when all went well, -2 when out of memory, else the first row of w that holds a NaN or an infinity. */
int64_t ek_linear_float(int type, const uint8_t *rows, int64_t row_bytes, int64_t n, int64_t k, const float *x,
                        int64_t M, float *out, int threads);
/* cdef end */

#endif
