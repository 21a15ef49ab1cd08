/* SPDX-License-Identifier: Apache-2.0
 *
 * The three phases of a product one by one, for an observer and for a back end that makes the second one elsewhere:
 * the same functions as the whole product, row by row instead of tile by tile.
 */
#include "gemm_s8.h"
#include "half.h"
#include "levels.h"
#include "linear_prepare.h"
#include "linear_tile.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

EK_TABLE(ek_row_amax, ek_row_amax)
EK_TABLE(ek_row_to_half, ek_row_to_half)
EK_TABLE(ek_tile_collect, ek_tile_collect)
EK_TABLE(ek_tile_collect_half, ek_tile_collect_half)
EK_TABLE(ek_tile_half, ek_tile_half)
EK_TABLE(ek_row_from_half, ek_row_from_half)

enum { INFINITE = 0x7f800000 };

struct phase {
    const ek_weight *w;
    int set;
    const float *x;
    int64_t M;
    uint8_t *q;
    float *scale;
    atomic_llong bad, rim, clipped;
    atomic_int no_memory;
};

static void phase_row(void *context, size_t index)
{
    struct phase *p = context;
    const ek_weight *w = p->w;
    size_t k_op = (size_t)w->r.k_op, length = (size_t)ek_k_length(w, p->set / w->parts);
    const float *x = p->x + (int64_t)index * w->r.n_in;
    float *work = malloc(2 * k_op * sizeof *work);
    if (!work || EK_CALL(ek_row_amax)(x, (size_t)w->r.n_in) >= INFINITE) {
        long long row = (long long)index, seen = atomic_load(&p->bad);
        while (work && row < seen && !atomic_compare_exchange_weak(&p->bad, &seen, row))
            ;
        atomic_fetch_or(&p->no_memory, !work);
        free(work);
        return;
    }
    x = ek_transformed(w, x, work);
    if (w->r.bits == 16) {
        EK_CALL(ek_row_to_half)(x + w->k_cuts[p->set], length, (uint16_t *)(void *)p->q + index * length);
        p->scale[index] = 1.0f;
    } else {
        ek_counts c = ek_prepare_row(w, p->set, x, work + k_op, (int8_t *)p->q + index * length, p->scale + index);
        atomic_fetch_add(&p->rim, c.rim);
        atomic_fetch_add(&p->clipped, c.clipped);
    }
    free(work);
}

int64_t ek_linear_prepare(const ek_weight *w, int a, const float *x, int64_t M, void *q, float *scale, int64_t *counter,
                          int threads)
{
    struct phase p = {.w = w, .set = a, .x = x, .M = M, .q = q, .scale = scale, .bad = INT64_MAX};
    ek_parallel(phase_row, &p, (size_t)M, threads);
    if (p.no_memory)
        return -2;
    if (w->r.bits != 16)
        counter[2] += M * ek_k_length(w, a / w->parts);
    counter[3] += p.rim;
    counter[4] += p.clipped;
    return p.bad == INT64_MAX ? -1 : p.bad;
}

struct half_sums {
    const ek_weight *w;
    int k;
    const uint16_t *q;
    int64_t M;
    float *sums;
    atomic_int no_memory;
};

static void half_row(void *context, size_t m)
{
    struct half_sums *p = context;
    size_t length = (size_t)ek_k_length(p->w, p->k), n_out = (size_t)p->w->r.n_out;
    float *a = malloc(17 * length * sizeof *a), *panel = a + length, sums[1][16];
    if (!a) {
        atomic_store(&p->no_memory, 1);
        return;
    }
    EK_CALL(ek_row_from_half)(p->q + m * length, length, a);
    for (size_t n = 0; n < n_out; n += 16) {
        EK_CALL(ek_row_from_half)(p->w->half[p->k] + n * length, length * 16, panel);
        EK_CALL(ek_tile_half)(a, length, 1, panel, length, sums);
        memcpy(p->sums + m * n_out + n, sums[0], (n_out - n < 16 ? n_out - n : 16) * sizeof **sums);
    }
    free(a);
}

int64_t ek_linear_sums(const ek_weight *w, int a, const void *q, int64_t M, void *sums, int threads)
{
    int k = a / w->parts, part = a % w->parts;
    if (w->r.bits == 16) {
        struct half_sums p = {w, k, q, M, sums, 0};
        ek_parallel(half_row, &p, (size_t)M, threads);
        return p.no_memory ? -2 : -1;
    }
    const struct mock_gemm_b *b = w->b + k * w->parts + part;
    return mock_gemm_s8(q, b->K, b, sums, b->N, (size_t)M, threads) ? -2 : -1;
}

struct collected {
    const ek_weight *w;
    int k;
    int64_t n0, n1;
    const void *sums;
    const float *scale;
    float *out;
    ek_collecting how;
};

static void collect_row(void *context, size_t m)
{
    const struct collected *p = context;
    size_t n = (size_t)(p->n1 - p->n0);
    float *out = p->out + (int64_t)m * p->w->r.n_out + p->n0;
    if (p->w->r.bits == 16)
        EK_CALL(ek_tile_collect_half)((const float *)p->sums + m * n, n, &p->how, out);
    else
        EK_CALL(ek_tile_collect)((const uint32_t *)p->sums + m * n, n, 1, n, p->scale + m,
                                 p->w->scale + p->k * p->w->r.n_out + p->n0, &p->how, out, n);
}

void ek_linear_collect(const ek_weight *w, int k, int64_t n0, int64_t n1, const void *sums, const float *scale, int64_t M,
                       float *out, int threads)
{
    struct collected p = {w, k, n0, n1, sums, scale, out, {1.0f / (float)w->r.block, k == 0, w->r.fma, 0}};
    ek_parallel(collect_row, &p, (size_t)M, M * (n1 - n0) < 16384 ? 1 : threads);
}
