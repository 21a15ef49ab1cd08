/* SPDX-License-Identifier: Apache-2.0
 *
 * A whole product with quantised weights in one call: prepare the activation once, then tiles of the int8 product (or
 * of the fp16 one) that turn into floats while they are in registers and L1.
 *
 * A task is some panels of one weight by some strips of rows. No sum depends on how tasks are cut.
 */
#include "levels.h"
#include "linear_prepare.h"
#include "linear_tile.h"
#include "pool.h"

#include <stdlib.h>

EK_TABLE(ek_tile_collect, ek_tile_collect)
EK_TABLE(ek_tile_collect_half, ek_tile_collect_half)
EK_TABLE(ek_tile_half, ek_tile_half)
EK_TABLE(ek_row_from_half, ek_row_from_half)

enum { TASKS_PER_THREAD = 8, MOST_SPANS = 64, GROUP_BYTES = 384 << 10, HALF_ROWS = 4, FEW_ROWS = 9 };

static const uint32_t zeros[GEMM_PANEL * GEMM_MAX_NR];

/* Panels of one N part of one weight, cut into chunks. */
struct span {
    int use, part;
    size_t panels, chunk, first_task, tasks;
};

struct product {
    const ek_weight *const *weights;
    float *const *outs;
    const struct gemm_path *path;
    const ek_prepared *a;
    struct span span[MOST_SPANS];
    int spans;
    size_t strips, group; /* strips of rows; how many of them a task takes at a time, so that they stay in L2 */
    atomic_int no_memory;
};

static size_t div_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static ek_collecting collecting(const ek_weight *w, int k)
{
    int narrow = w->r.bits == 4 ? 1 + w->r.saturate16 : 0;
    return (ek_collecting){1.0f / (float)w->r.block, k == 0, w->r.fma, narrow};
}

/* Strip s by `np` panels from `panel`, over all K parts. */
static void integer_tile(const struct product *x, const struct span *span, size_t panel, unsigned np, size_t s)
{
    const ek_weight *w = x->weights[span->use];
    const ek_prepared *a = x->a;
    size_t first = s * a->rows, m = least(a->rows, (size_t)a->M - first), columns = panel * GEMM_PANEL;
    size_t start = (size_t)ek_part_start(w, span->part) + columns, n_out = (size_t)w->r.n_out;
    uint32_t sums[GEMM_MAX_MR * GEMM_PANEL * GEMM_MAX_NR];
    for (int k = 0; k < w->r.k_parts; k++) {
        int set = w->rank_one ? k * w->parts + span->part : k;
        const struct mock_gemm_b *b = w->b + k * w->parts + span->part;
        const uint8_t *strip = a->strips + a->offset[set] + first * ek_row_bytes(a, set);
        const uint32_t *init = x->path->form == GEMM_A_U8 ? b->offset_fix + columns : zeros;
        ek_collecting how = collecting(w, k);
        x->path->tile(strip, b->data + panel * b->quads * GEMM_QUAD_BYTES, b->quads * GEMM_QUAD_BYTES, b->quads,
                      (unsigned)m, np, sums, np * GEMM_PANEL, init);
        EK_CALL(ek_tile_collect)(sums, np * GEMM_PANEL, m, least(np * GEMM_PANEL, b->N - columns),
                                 a->scale + (size_t)set * (size_t)a->M + first, w->scale + (size_t)k * n_out + start,
                                 &how, x->outs[span->use] + first * n_out + start, n_out);
    }
}

/* All rows by one panel of halves, widened once for all of them. */
static void half_panel(struct product *x, const struct span *span, size_t panel)
{
    const ek_weight *w = x->weights[span->use];
    size_t start = panel * 16, n_out = (size_t)w->r.n_out, k_op = (size_t)w->r.k_op, M = (size_t)x->a->M;
    float *wide = malloc(k_op * 16 * sizeof *wide);
    if (!wide) {
        atomic_store(&x->no_memory, 1);
        return;
    }
    for (int k = 0; k < w->r.k_parts; k++) {
        size_t length = (size_t)ek_k_length(w, k);
        ek_collecting how = collecting(w, k);
        EK_CALL(ek_row_from_half)(w->half[k] + panel * length * 16, length * 16, wide);
        for (size_t m = 0; m < M; m += HALF_ROWS) {
            float sums[HALF_ROWS][16];
            size_t rows = least(HALF_ROWS, M - m);
            EK_CALL(ek_tile_half)(x->a->floats + m * k_op + w->k_cuts[k], k_op, rows, wide, length, sums);
            for (size_t r = 0; r < rows; r++)
                EK_CALL(ek_tile_collect_half)(sums[r], least(16, n_out - start), &how,
                                              x->outs[span->use] + (m + r) * n_out + start);
        }
    }
    free(wide);
}

static void run_task(void *context, size_t index)
{
    struct product *x = context;
    const struct span *span = x->span;
    while (index >= span->first_task + span->tasks)
        span++;
    int half = x->weights[span->use]->r.bits == 16;
    /* Few rows read the weights once from end to end: one panel at a time is one stream, which a prefetcher follows
     * (measured on Zen 4: 25 GB/s against 13 with two panels side by side). */
    size_t nr = x->a->M < FEW_ROWS ? 1 : x->path->nr, p0 = (index - span->first_task) * span->chunk;
    size_t p1 = least(p0 + span->chunk, span->panels);
    for (size_t p = p0; half && p < p1; p++)
        half_panel(x, span, p);
    for (size_t s0 = 0; !half && s0 < x->strips; s0 += x->group)
        for (size_t p = p0; p < p1; p += nr)
            for (size_t s = s0; s < least(s0 + x->group, x->strips); s++)
                integer_tile(x, span, p, (unsigned)least(nr, p1 - p), s);
}

static size_t cut(struct product *x, int count, int threads)
{
    size_t all = 0, wanted = threads > 1 ? (size_t)threads * TASKS_PER_THREAD : 1, tasks = 0;
    for (int use = 0; use < count; use++)
        for (int part = 0; part < x->weights[use]->parts && x->spans < MOST_SPANS; part++) {
            const ek_weight *w = x->weights[use];
            size_t columns = (size_t)(ek_part_end(w, part) - ek_part_start(w, part));
            x->span[x->spans++] = (struct span){.use = use, .part = part, .panels = div_up(columns, GEMM_PANEL)};
            all += div_up(columns, GEMM_PANEL);
        }
    size_t nr = x->path->nr, chunk = div_up(div_up(all, wanted), nr) * nr;
    for (struct span *span = x->span; span < x->span + x->spans; span++) {
        span->chunk = chunk;
        span->first_task = tasks;
        span->tasks = div_up(span->panels, chunk);
        tasks += span->tasks;
    }
    return tasks;
}

int64_t ek_linear_quantized(const ek_weight *const *weights, float *const *outs, int64_t *const *counters, int count,
                            const float *x, int64_t M, int threads)
{
    const ek_weight *w = weights[0];
    const struct gemm_path *path = gemm_path_current();
    ek_prepared a;
    if (!M)
        return -1;
    size_t rows = w->r.bits == 16 ? HALF_ROWS : path->mr;
    int64_t code = ek_prepared_new(&a, w, x, M, rows, path->form) ? -2 : ek_prepare_all(&a, threads);
    if (code == -1) {
        size_t row_bytes = (size_t)w->r.k_op * (w->r.bits == 16 ? 4 : gemm_a_bytes(path->form) / GEMM_QUAD);
        struct product product = {.weights = weights, .outs = outs, .path = path, .a = &a};
        product.strips = div_up((size_t)M, rows);
        product.group = GROUP_BYTES / (rows * row_bytes + 1) + 1;
        size_t tasks = cut(&product, count, threads);
        ek_parallel(run_task, &product, tasks, threads);
        code = product.no_memory ? -2 : -1;
        for (int i = 0; i < count; i++) {
            counters[i][0] += 1;
            counters[i][1] += M;
            counters[i][2] += w->r.bits == 16 ? 0 : M * w->r.k_op * (w->rank_one ? w->parts : 1);
            counters[i][3] += a.rim;
            counters[i][4] += a.clipped;
        }
    }
    ek_prepared_free(&a);
    return code;
}
