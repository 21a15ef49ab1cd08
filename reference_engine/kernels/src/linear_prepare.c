/* SPDX-License-Identifier: Apache-2.0
 *
 * Activations: transform, fold, measure, quantise, pack.
 */
#include "linear_prepare.h"

#include "half.h"
#include "levels.h"
#include "pool.h"

#include <stdlib.h>
#include <string.h>

EK_TABLE(ek_row_amax, ek_row_amax)
EK_TABLE(ek_row_quantize, ek_row_quantize)
EK_TABLE(ek_row_transform, ek_row_transform)
EK_TABLE(ek_row_multiply, ek_row_multiply)
EK_TABLE(ek_row_through_half, ek_row_through_half)

enum { INFINITE = 0x7f800000, SMALL = 1 << 14 };

int ek_prepared_new(ek_prepared *p, const ek_weight *w, const float *x, int64_t M, size_t rows, enum gemm_a_form form)
{
    *p = (ek_prepared){.w = w, .x = x, .M = M, .sets = ek_activations(w), .rows = rows, .form = form, .bad = INT64_MAX};
    p->scale = malloc(((size_t)p->sets * (size_t)M + 1) * sizeof *p->scale);
    if (w->r.bits == 16) {
        p->floats = malloc(((size_t)M * (size_t)w->r.k_op + 1) * sizeof *p->floats);
        return p->scale && p->floats ? 0 : -1;
    }
    size_t bytes = 0;
    p->offset = malloc(((size_t)p->sets + 1) * sizeof *p->offset);
    for (int s = 0; p->offset && s < p->sets; s++) {
        p->offset[s] = bytes;
        bytes += (ek_row_bytes(p, s) * (size_t)M + 63) / 64 * 64;
    }
    void *strips = NULL;
    if (p->offset && !posix_memalign(&strips, 64, bytes + 64))
        p->strips = strips;
    return p->scale && p->strips ? 0 : -1;
}

void ek_prepared_free(ek_prepared *p)
{
    free(p->scale);
    free(p->floats);
    free(p->offset);
    free(p->strips);
}

const float *ek_transformed(const ek_weight *w, const float *x, float *work)
{
    if (!w->signs)
        return x;
    EK_CALL(ek_row_transform)(x, w->signs, (size_t)w->r.n_in, (size_t)w->r.k_op, (size_t)w->r.block, work);
    return work;
}

ek_counts ek_prepare_row(const ek_weight *w, int set, const float *x, float *scratch, int8_t *q, float *scale)
{
    int k = set / w->parts, part = set % w->parts;
    size_t length = (size_t)ek_k_length(w, k);
    ek_counts counts = {0, 0};
    x += w->k_cuts[k];
    if (w->rank_one) {
        EK_CALL(ek_row_multiply)(x, w->fold + part * w->r.k_op + w->k_cuts[k], length, scratch);
        x = scratch;
    }
    float amax = ek_from_bits(EK_CALL(ek_row_amax)(x, length));
    *scale = (w->r.a_clip * amax) / (float)w->rounding.most;
    EK_CALL(ek_row_quantize)(x, length, ek_reciprocal(*scale), amax, &w->rounding, q, &counts);
    return counts;
}

static void report_bad(ek_prepared *p, int64_t row)
{
    long long seen = atomic_load(&p->bad);
    while (row < seen && !atomic_compare_exchange_weak(&p->bad, &seen, row))
        ;
}

/* One strip of rows. work: [rows][k_op] for the transform; q: [rows][k_op]. */
static void prepare_integers(ek_prepared *p, int64_t first, unsigned m, float *work, float *scratch, int8_t *q)
{
    const ek_weight *w = p->w;
    const float *row[GEMM_MAX_MR];
    ek_counts all = {0, 0};
    for (unsigned i = 0; i < m; i++) {
        const float *x = p->x + (first + i) * w->r.n_in;
        if (EK_CALL(ek_row_amax)(x, (size_t)w->r.n_in) >= INFINITE) {
            report_bad(p, first + i);
            return;
        }
        row[i] = ek_transformed(w, x, work + (size_t)i * (size_t)w->r.k_op);
    }
    for (int set = 0; set < p->sets; set++) {
        const struct mock_gemm_b *b = w->b + set;
        for (unsigned i = 0; i < m; i++) {
            ek_counts c = ek_prepare_row(w, set, row[i], scratch, q + i * b->K, p->scale + set * p->M + first + i);
            all.rim += c.rim;
            all.clipped += c.clipped;
        }
        gemm_pack_a(p->strips + p->offset[set] + (size_t)first * ek_row_bytes(p, set), q, b->K, b->K, 0, b->quads, m,
                    p->form);
    }
    atomic_fetch_add(&p->rim, all.rim);
    atomic_fetch_add(&p->clipped, all.clipped);
}

static void prepare_floats(ek_prepared *p, int64_t first, unsigned m, float *work)
{
    const ek_weight *w = p->w;
    for (int64_t i = first; i < first + m; i++) {
        const float *x = p->x + i * w->r.n_in;
        if (EK_CALL(ek_row_amax)(x, (size_t)w->r.n_in) >= INFINITE) {
            report_bad(p, i);
            return;
        }
        EK_CALL(ek_row_through_half)(ek_transformed(w, x, work), (size_t)w->r.k_op, p->floats + i * w->r.k_op);
    }
}

static void prepare_strip(void *context, size_t strip)
{
    ek_prepared *p = context;
    size_t k_op = (size_t)p->w->r.k_op, copies = p->w->signs ? p->rows : 0;
    int64_t first = (int64_t)(strip * p->rows), left = p->M - first;
    unsigned m = left < (int64_t)p->rows ? (unsigned)left : (unsigned)p->rows;
    float *work = malloc((copies + 1) * k_op * sizeof *work + p->rows * k_op + GEMM_QUAD);
    if (!work) {
        atomic_store(&p->no_memory, 1);
        return;
    }
    float *scratch = work + copies * k_op;
    if (p->w->r.bits == 16)
        prepare_floats(p, first, m, p->w->signs ? work : scratch);
    else
        prepare_integers(p, first, m, work, scratch, (int8_t *)(scratch + k_op));
    free(work);
}

int64_t ek_prepare_all(ek_prepared *p, int threads)
{
    size_t strips = ((size_t)p->M + p->rows - 1) / p->rows;
    if (p->M * p->w->r.k_op * p->sets < SMALL)
        threads = 1; /* less than a wake-up */
    ek_parallel(prepare_strip, p, strips, threads);
    return p->no_memory ? -2 : p->bad == INT64_MAX ? -1 : p->bad;
}
