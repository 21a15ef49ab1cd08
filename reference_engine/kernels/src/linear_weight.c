/* SPDX-License-Identifier: Apache-2.0
 *
 * A quantised weight: its memory and what can be asked of it.
 */
#include "linear_weight.h"

#include <stdlib.h>
#include <string.h>

static void *copied(const void *from, size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    return p ? memcpy(p, from, bytes) : NULL;
}

/* One K part by one N part of it. */
static int new_panels(ek_arena *arena, struct mock_gemm_b *b, size_t K, size_t N)
{
    size_t quads = (K + GEMM_QUAD - 1) / GEMM_QUAD, panels = (N + GEMM_PANEL - 1) / GEMM_PANEL;
    *b = (struct mock_gemm_b){.K = K, .N = N, .quads = quads, .panels = panels};
    b->data = ek_arena_take(arena, panels * quads * GEMM_QUAD_BYTES);
    b->offset_fix = ek_arena_take(arena, panels * GEMM_PANEL * sizeof *b->offset_fix);
    return b->data && b->offset_fix;
}

static int allocate(ek_weight *w)
{
    int cells = w->r.k_parts * w->parts, good = 1;
    size_t n = (size_t)w->r.n_out;
    w->scale = calloc((size_t)w->r.k_parts * n + 1, sizeof *w->scale);
    if (w->rank_one)
        w->fold = calloc((size_t)w->parts * (size_t)w->r.k_op + 1, sizeof *w->fold);
    if (!w->scale || (w->rank_one && !w->fold))
        return 0;
    if (w->r.bits == 16) {
        w->half = calloc((size_t)w->r.k_parts, sizeof *w->half);
        for (int k = 0; w->half && good && k < w->r.k_parts; k++) {
            size_t bytes = (n + 15) / 16 * 16 * (size_t)ek_k_length(w, k) * sizeof **w->half;
            good = (w->half[k] = ek_arena_take(w->arena, bytes)) != NULL;
        }
        return w->half && good;
    }
    w->b = calloc((size_t)cells, sizeof *w->b);
    for (int i = 0; w->b && good && i < cells; i++) {
        int part = i % w->parts;
        good = new_panels(w->arena, w->b + i, (size_t)ek_k_length(w, i / w->parts),
                          (size_t)(ek_part_end(w, part) - ek_part_start(w, part)));
    }
    return w->b && good;
}

ek_weight *ek_weight_new(const ek_recipe *recipe, ek_arena *arena)
{
    ek_weight *w = calloc(1, sizeof *w);
    if (!w)
        return NULL;
    w->r = *recipe;
    w->arena = arena ? ek_arena_hold(arena) : ek_arena_new(0);
    w->rank_one = recipe->scale_kind == EK_RANK_ONE;
    w->parts = w->rank_one ? recipe->n_parts : 1;
    w->rounding = (ek_rounding){recipe->bits == 4 ? 7 : 127, recipe->clamp, recipe->bits == 4};
    w->k_cuts = copied(recipe->k_cuts, ((size_t)recipe->k_parts + 1) * sizeof *w->k_cuts);
    w->n_cuts = copied(recipe->n_cuts, ((size_t)recipe->n_parts + 1) * sizeof *w->n_cuts);
    w->signs = recipe->signs ? copied(recipe->signs, (size_t)recipe->k_op) : NULL;
    w->r.k_cuts = w->k_cuts;
    w->r.n_cuts = w->n_cuts;
    w->r.signs = w->signs;
    pthread_mutex_init(&w->lock, NULL);
    if (!w->arena || !w->k_cuts || !w->n_cuts || (recipe->signs && !w->signs) || !allocate(w)) {
        ek_weight_free(w);
        return NULL;
    }
    return w;
}

void ek_weight_free(ek_weight *w)
{
    if (!w)
        return;
    ek_arena_free(w->arena);
    free(w->b);
    free(w->half);
    free(w->scale);
    free(w->fold);
    free(w->k_cuts);
    free(w->n_cuts);
    free(w->signs);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

void ek_weight_scales(const ek_weight *w, int k, float *out)
{
    memcpy(out, w->scale + (size_t)k * (size_t)w->r.n_out, (size_t)w->r.n_out * sizeof *out);
}

void ek_weight_fold(const ek_weight *w, int k, int n, float *out)
{
    memcpy(out, w->fold + n * w->r.k_op + w->k_cuts[k], (size_t)ek_k_length(w, k) * sizeof *out);
}

static void unpack_half(const ek_weight *w, int k, int64_t n0, int64_t n1, uint16_t *out)
{
    int64_t length = ek_k_length(w, k);
    for (int64_t n = n0; n < n1; n++)
        for (int64_t i = 0; i < length; i++)
            *out++ = w->half[k][(n / 16 * length + i) * 16 + n % 16];
}

void ek_weight_unpack(const ek_weight *w, int k, int64_t n0, int64_t n1, void *out)
{
    if (w->r.bits == 16) {
        unpack_half(w, k, n0, n1, out);
        return;
    }
    int8_t *to = out;
    for (int64_t n = n0; n < n1; n++) {
        int part = 0;
        while (n >= ek_part_end(w, part))
            part++;
        const struct mock_gemm_b *b = w->b + k * w->parts + part;
        size_t column = (size_t)(n - ek_part_start(w, part));
        const int8_t *panel = b->data + column / GEMM_PANEL * b->quads * GEMM_QUAD_BYTES + column % GEMM_PANEL * GEMM_QUAD;
        for (size_t i = 0; i < b->K; i++)
            *to++ = panel[i / GEMM_QUAD * GEMM_QUAD_BYTES + i % GEMM_QUAD];
    }
}

int64_t ek_weight_bytes(const ek_weight *w)
{
    int64_t bytes = (int64_t)sizeof *w + w->r.k_parts * w->r.n_out * 4;
    for (int k = 0; k < w->r.k_parts; k++)
        for (int part = 0; part < w->parts; part++)
            bytes += w->b ? (int64_t)(w->b[k * w->parts + part].panels * w->b[k * w->parts + part].quads) * GEMM_QUAD_BYTES
                          : (w->r.n_out + 15) / 16 * 32 * ek_k_length(w, k);
    return bytes;
}
