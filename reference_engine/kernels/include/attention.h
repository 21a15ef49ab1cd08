/* SPDX-License-Identifier: Apache-2.0
 *
 * The cells of one layer's keys and values, and attention over them. Layout: reference_engine/kv_cache.py; order of
 * sums: reference_engine/vector_ops_attention.py.
 */
#ifndef ENGINE_ATTENTION_H
#define ENGINE_ATTENTION_H

#include <stddef.h>
#include <stdint.h>

/* cdef begin */
enum { EK_KV_F32, EK_KV_F16, EK_KV_Q8_0, EK_KV_Q4_0 };

typedef struct {
    void *k_codes;      /* [heads][capacity / 16][codes of a row][16] */
    uint16_t *k_scales; /* [heads][capacity / 16][scales of a row][16], half floats */
    void *v_codes;      /* [heads][capacity][codes of a row] */
    uint16_t *v_scales; /* [heads][capacity][scales of a row] */
    int32_t k_type, v_type, heads, k_dim, v_dim;
    int32_t capacity;     /* cells, a multiple of 64; the cell of a position is the position modulo this */
    int32_t k_rot, v_rot; /* sizes of the Hadamard blocks in which rows are rotated, 0: none */
} ek_kv;

/* Stores keys [rows][heads][k_dim] and values [rows][heads][v_dim] of the tokens at positions[rows], which rise. */
void ek_kv_append(const ek_kv *kv, const float *k, const float *v, const int32_t *positions, size_t rows, int threads);
/* Queries [rows][heads][k_dim] at positions[rows] to out [rows][heads * v_dim]; heads is a multiple of kv->heads.
 * window: how many positions a row sees at most, 0: all. softcap 0: none. 0, or -1 without memory. */
int ek_attention(const ek_kv *kv, const float *q, const int32_t *positions, size_t rows, size_t heads, float scale,
                 float softcap, int32_t window, int flash, float *out, int threads);
/* cdef end */

#endif
