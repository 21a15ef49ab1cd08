/* SPDX-License-Identifier: Apache-2.0
 *
 * Stores rows of keys and values, one head to a task.
 */
#include <string.h>

#include "kv_lanes.h"
#include "levels.h"
#include "pool.h"

EK_TABLE(ek_kv_encode, ek_kv_encode)
EK_TABLE(ek_hadamard_rows, ek_hadamard_rows)

typedef struct {
    const ek_kv *kv;
    const float *k, *v;
    const int32_t *positions;
    size_t rows;
} append_job;

static const float *rotated(const float *x, size_t n, int32_t block, float *buffer)
{
    if (!block)
        return x;
    memcpy(buffer, x, n * sizeof *x);
    EK_CALL(ek_hadamard_rows)(buffer, n, (size_t)block);
    return buffer;
}

static void append_head(void *context, size_t head)
{
    const append_job *job = context;
    const ek_kv *kv = job->kv;
    float buffer[KV_MAX_DIM];
    size_t heads = (size_t)kv->heads, capacity = (size_t)kv->capacity;
    size_t k_dim = (size_t)kv->k_dim, v_dim = (size_t)kv->v_dim;
    size_t k_codes = kv_codes(kv->k_type, k_dim), v_codes = kv_codes(kv->v_type, v_dim);
    size_t k_scales = kv_scales(kv->k_type, k_dim), v_scales = kv_scales(kv->v_type, v_dim);
    for (size_t row = 0; row < job->rows; row++) {
        size_t cell = (size_t)job->positions[row] % capacity;
        size_t tile = (head * capacity + cell) / KV_TILE, lane = cell % KV_TILE, at = head * capacity + cell;
        const float *x = rotated(job->k + (row * heads + head) * k_dim, k_dim, kv->k_rot, buffer);
        EK_CALL(ek_kv_encode)(kv->k_type, x, k_dim,
                              (char *)kv->k_codes + (tile * k_codes * KV_TILE + lane) * kv_code_bytes(kv->k_type),
                              kv->k_scales + tile * k_scales * KV_TILE + lane, KV_TILE);
        x = rotated(job->v + (row * heads + head) * v_dim, v_dim, kv->v_rot, buffer);
        EK_CALL(ek_kv_encode)(kv->v_type, x, v_dim, (char *)kv->v_codes + at * v_codes * kv_code_bytes(kv->v_type),
                              kv->v_scales + at * v_scales, 1);
    }
}

void ek_kv_append(const ek_kv *kv, const float *k, const float *v, const int32_t *positions, size_t rows, int threads)
{
    append_job job = {kv, k, v, positions, rows};
    ek_parallel(append_head, &job, (size_t)kv->heads, rows >= 16 ? threads : 1);
}
