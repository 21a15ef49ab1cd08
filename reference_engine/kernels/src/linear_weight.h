/* SPDX-License-Identifier: Apache-2.0
 *
 * What a quantised weight is made of. Private.
 */
#ifndef ENGINE_LINEAR_WEIGHT_H
#define ENGINE_LINEAR_WEIGHT_H

#include "gemm_path.h"
#include "linear.h"
#include "linear_rows.h"

#include <pthread.h>

enum { EK_CHANNEL, EK_SEGMENT, EK_TENSOR, EK_RANK_ONE };
enum { EK_MAX_GROUP = 8 };

struct ek_weight {
    ek_recipe r;       /* its pointers are those below */
    int64_t *k_cuts, *n_cuts;
    int8_t *signs;
    ek_arena *arena;   /* of the panels */
    ek_rounding rounding;
    int rank_one;
    int parts;         /* N parts stored apart: those of the recipe with rank-one scales, else one */
    struct mock_gemm_b *b; /* [k_parts][parts], bits 8 and 4 */
    uint16_t **half;       /* [k_parts], bits 16: panels of 16 columns, each [length][16] */
    float *scale;          /* [k_parts][n_out] */
    float *fold;           /* [parts][k_op], rank one */
    pthread_mutex_t lock;  /* of fold while it grows */
};

static inline int64_t ek_part_start(const ek_weight *w, int part)
{
    return w->rank_one ? w->n_cuts[part] : 0;
}

static inline int64_t ek_part_end(const ek_weight *w, int part)
{
    return w->rank_one ? w->n_cuts[part + 1] : w->r.n_out;
}

static inline int64_t ek_k_length(const ek_weight *w, int k)
{
    return w->k_cuts[k + 1] - w->k_cuts[k];
}

/* Number of prepared activations. */
static inline int ek_activations(const ek_weight *w)
{
    return w->rank_one ? w->r.k_parts * w->parts : w->r.k_parts;
}

/* Zeroed memory, aligned to a cache line; it lives as long as the arena. NULL when out of memory. */
void *ek_arena_take(ek_arena *arena, size_t bytes);
/* One holder more. */
ek_arena *ek_arena_hold(ek_arena *arena);

/* Largest magnitude to the scale of a weight. */
static inline float ek_weight_scale(float amax, int32_t most)
{
    return amax == 0.0f ? 1.0f : amax / (float)most;
}

static inline float ek_reciprocal(float scale)
{
    return scale == 0.0f ? 0.0f : 1.0f / scale;
}

#endif
