/* SPDX-License-Identifier: Apache-2.0
 *
 * What storing and reading of keys and values calls per level (levels.h).
 */
#ifndef ENGINE_KV_LANES_H
#define ENGINE_KV_LANES_H

#include "attention.h"

enum { KV_TILE = 16, KV_BLOCK = 32, KV_MAX_DIM = 1024 };

/* One row of keys or values: codes `stride` apart (16 in a tile of keys, 1 in a row of values), scales likewise. */
typedef void ek_kv_encode(int type, const float *x, size_t n, void *codes, uint16_t *scales, size_t stride);
/* One tile of keys, f32 [k_dim][16]; in `buffer`, or where it stands when it is stored as f32. */
typedef const float *ek_kv_tile(const ek_kv *kv, size_t head, size_t position, float *buffer);
/* n rows of values from `position` on, which do not cross the end of the cells; f32 [n][v_dim]. */
typedef const float *ek_kv_rows(const ek_kv *kv, size_t head, size_t position, size_t n, float *buffer);
/* Orthonormal Walsh-Hadamard transform of each block of n values, in place. */
typedef void ek_hadamard_rows(float *x, size_t n, size_t block);

static inline size_t kv_codes(int type, size_t n) { return type == EK_KV_Q4_0 ? n / 2 : n; }
static inline size_t kv_scales(int type, size_t n) { return type >= EK_KV_Q8_0 ? n / KV_BLOCK : 0; }
static inline size_t kv_code_bytes(int type) { return type == EK_KV_F32 ? 4 : type == EK_KV_F16 ? 2 : 1; }

#endif
