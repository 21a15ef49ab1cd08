/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of a tensor into a quantised weight: dequantise, transform, measure, quantise, pack, one row at a time, so that
 * no more than a few rows are ever in float32.
 */
#include "dequant.h"
#include "half.h"
#include "levels.h"
#include "linear_weight.h"
#include "pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

EK_TABLE(ek_row_amax, ek_row_amax)
EK_TABLE(ek_row_quantize, ek_row_quantize)
EK_TABLE(ek_row_transform, ek_row_transform)
EK_TABLE(ek_row_share, ek_row_share)
EK_TABLE(ek_row_rank_one, ek_row_rank_one)
EK_TABLE(ek_row_to_half, ek_row_to_half)

enum { ROWS_PER_TASK = 16, INFINITE = 0x7f800000 };

struct feed {
    ek_weight *w;
    int pass, last, type;
    const uint8_t *rows;
    int64_t row_bytes, first, count;
    atomic_llong bad;    /* number of the first row that is not finite, LLONG_MAX for none */
    atomic_int no_memory;
};

/* What one task works with. share: rank one, v of these rows over [parts][k_op]; touched: which parts it has. */
struct buffers {
    float *row, *work, *share;
    int8_t *q;
    uint16_t *half;
};

int ek_weight_passes(const ek_weight *w)
{
    return w->rank_one ? 3 : w->r.bits == 16 || w->r.scale_kind == EK_CHANNEL ? 1 : 2;
}

static int part_of(const ek_weight *w, int64_t n)
{
    int part = 0;
    while (n >= ek_part_end(w, part))
        part++;
    return part;
}

/* One column of packed panels; its sum for the paths that add 128 to A. */
static void pack_column(struct mock_gemm_b *b, size_t column, const int8_t *q)
{
    int8_t *to = b->data + column / GEMM_PANEL * b->quads * GEMM_QUAD_BYTES + column % GEMM_PANEL * GEMM_QUAD;
    size_t whole = b->K / GEMM_QUAD;
    for (size_t i = 0; i < whole; i++)
        memcpy(to + i * GEMM_QUAD_BYTES, q + i * GEMM_QUAD, GEMM_QUAD);
    memcpy(to + whole * GEMM_QUAD_BYTES, q + whole * GEMM_QUAD, b->K % GEMM_QUAD);
    int32_t sum = 0;
    for (size_t i = 0; i < b->K; i++)
        sum += q[i];
    b->offset_fix[column] = 0u - 128u * (uint32_t)sum;
}

static float clipped_amax(const ek_weight *w, const float *x, int k)
{
    return ek_from_bits(EK_CALL(ek_row_amax)(x + w->k_cuts[k], (size_t)ek_k_length(w, k))) * w->r.b_clip;
}

static void store_half(const ek_weight *w, int64_t n, const float *x, uint16_t *half)
{
    for (int k = 0; k < w->r.k_parts; k++) {
        int64_t length = ek_k_length(w, k);
        uint16_t *to = w->half[k] + n / 16 * length * 16 + n % 16;
        EK_CALL(ek_row_to_half)(x + w->k_cuts[k], (size_t)length, half);
        for (int64_t i = 0; i < length; i++)
            to[i * 16] = half[i];
        w->scale[k * w->r.n_out + n] = 1.0f;
    }
}

static void measure(ek_weight *w, int64_t n, const float *x)
{
    for (int k = 0; k < w->r.k_parts; k++) {
        float amax = clipped_amax(w, x, k), u = amax / (float)w->rounding.most;
        w->scale[k * w->r.n_out + n] = !w->rank_one ? amax : u > 1e-7f ? u : 1e-7f;
    }
}

static void share(const ek_weight *w, int64_t n, const float *x, float *of_part)
{
    for (int k = 0; k < w->r.k_parts; k++)
        EK_CALL(ek_row_share)(x + w->k_cuts[k], (size_t)ek_k_length(w, k), w->r.b_clip, (float)w->rounding.most,
                              1.0f / w->scale[k * w->r.n_out + n], of_part + w->k_cuts[k]);
}

static void store(ek_weight *w, int64_t n, const float *x, int8_t *q)
{
    int part = part_of(w, n);
    ek_counts unused = {0, 0};
    for (int k = 0; k < w->r.k_parts; k++) {
        const float *from = x + w->k_cuts[k];
        size_t length = (size_t)ek_k_length(w, k);
        float *scale = w->scale + k * w->r.n_out + n;
        if (w->rank_one) {
            EK_CALL(ek_row_rank_one)(from, length, *scale, w->fold + part * w->r.k_op + w->k_cuts[k], &w->rounding, q);
        } else {
            float amax = ek_from_bits(EK_CALL(ek_row_amax)(from, length));
            if (w->r.scale_kind == EK_CHANNEL)
                *scale = ek_weight_scale(amax * w->r.b_clip, w->rounding.most);
            EK_CALL(ek_row_quantize)(from, length, ek_reciprocal(*scale), amax, &w->rounding, q, &unused);
        }
        pack_column(w->b + k * w->parts + part, (size_t)(n - ek_part_start(w, part)), q);
    }
}

static void report_bad(struct feed *f, int64_t row)
{
    long long seen = atomic_load(&f->bad);
    while (row < seen && !atomic_compare_exchange_weak(&f->bad, &seen, row))
        ;
}

/* What these rows found out about v, to what all have. */
static void merge_shares(ek_weight *w, int64_t first, int64_t last, const float *found)
{
    pthread_mutex_lock(&w->lock);
    for (int part = part_of(w, first); part <= part_of(w, last - 1); part++)
        for (int64_t i = part * w->r.k_op; i < (part + 1) * w->r.k_op; i++)
            w->fold[i] = found[i] > w->fold[i] ? found[i] : w->fold[i];
    pthread_mutex_unlock(&w->lock);
}

static void feed_rows(struct feed *f, int64_t first, int64_t last, const struct buffers *have)
{
    ek_weight *w = f->w;
    for (int64_t n = first; n < last; n++) {
        const float *x = have->row;
        ek_dequant_row(f->type, f->rows + (n - f->first) * f->row_bytes, have->row, (size_t)w->r.n_in);
        if (EK_CALL(ek_row_amax)(have->row, (size_t)w->r.n_in) >= INFINITE) {
            report_bad(f, n);
            return;
        }
        if (w->signs) {
            EK_CALL(ek_row_transform)(have->row, w->signs, (size_t)w->r.n_in, (size_t)w->r.k_op, (size_t)w->r.block,
                                      have->work);
            x = have->work;
        }
        if (w->r.bits == 16)
            store_half(w, n, x, have->half);
        else if (f->pass == f->last)
            store(w, n, x, have->q);
        else if (f->pass == 0)
            measure(w, n, x);
        else
            share(w, n, x, have->share + part_of(w, n) * w->r.k_op);
    }
    if (have->share)
        merge_shares(w, first, last, have->share);
}

static void feed_task(void *context, size_t index)
{
    struct feed *f = context;
    const ek_recipe *r = &f->w->r;
    int64_t first = f->first + (int64_t)index * ROWS_PER_TASK, last = first + ROWS_PER_TASK, end = f->first + f->count;
    int shares = f->w->rank_one && f->pass == 1;
    struct buffers have = {
        .row = malloc((size_t)r->n_in * sizeof(float)),
        .work = malloc((size_t)r->k_op * sizeof(float)),
        .q = malloc((size_t)r->k_op + GEMM_QUAD),
        .half = malloc((size_t)r->k_op * sizeof(uint16_t)),
        .share = shares ? calloc((size_t)f->w->parts * (size_t)r->k_op, sizeof(float)) : NULL,
    };
    if (have.row && have.work && have.q && have.half && (have.share || !shares))
        feed_rows(f, first, last < end ? last : end, &have);
    else
        atomic_store(&f->no_memory, 1);
    free(have.row);
    free(have.work);
    free(have.q);
    free(have.half);
    free(have.share);
}

int64_t ek_weight_feed(ek_weight *w, int pass, int type, const uint8_t *rows, int64_t row_bytes, int64_t first,
                       int64_t count, int threads)
{
    struct feed f = {.w = w, .pass = pass, .last = ek_weight_passes(w) - 1, .type = type, .rows = rows,
                     .row_bytes = row_bytes, .first = first, .count = count, .bad = INT64_MAX};
    ek_parallel(feed_task, &f, (size_t)(count + ROWS_PER_TASK - 1) / ROWS_PER_TASK, threads);
    return f.no_memory ? -2 : f.bad == INT64_MAX ? -1 : f.bad;
}

static float largest(const float *x, int64_t from, int64_t to)
{
    float most = 0.0f;
    for (int64_t i = from; i < to; i++)
        most = x[i] > most ? x[i] : most;
    return most;
}

void ek_weight_settle(ek_weight *w, int pass)
{
    if (pass || w->r.bits == 16 || (w->r.scale_kind != EK_SEGMENT && w->r.scale_kind != EK_TENSOR))
        return;
    float all = largest(w->scale, 0, w->r.k_parts * w->r.n_out);
    for (int k = 0; k < w->r.k_parts; k++)
        for (int part = 0; part < w->r.n_parts; part++) {
            float *scale = w->scale + k * w->r.n_out;
            int64_t n0 = w->n_cuts[part], n1 = w->n_cuts[part + 1];
            float amax = w->r.scale_kind == EK_TENSOR ? all : largest(scale, n0, n1);
            for (int64_t n = n0; n < n1; n++)
                scale[n] = ek_weight_scale(amax, w->rounding.most);
        }
}
