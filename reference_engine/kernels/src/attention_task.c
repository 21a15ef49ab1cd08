/* SPDX-License-Identifier: Apache-2.0
 *
 * Some query rows of one head of keys: the keys and values of a block are decoded once and used by all of them. A row
 * takes nothing from a position that it does not see, and everything else in rising position.
 */
#include "attention_task.h"

#include <string.h>

#include "levels.h"
#include "vector.h"
#include "vector_lanes.h"

EK_TABLE(ek_score_tile, ek_score_tile)
EK_TABLE(ek_mix_rows, ek_mix_rows)
EK_TABLE(ek_row_max, ek_row_max)
EK_TABLE(ek_row_exp, ek_row_exp)
EK_TABLE(ek_row_divide, ek_row_divide)
EK_TABLE(ek_kv_tile, ek_kv_tile)
EK_TABLE(ek_kv_rows, ek_kv_rows)
EK_TABLE(ek_hadamard_rows, ek_hadamard_rows)
EK_TABLE(ek_map_row, ek_map_row)

typedef struct {
    const attention_job *job;
    size_t head, rows, k_dim, v_dim;
    size_t start;  /* position of the first score of each row */
    size_t stride; /* scores of one row */
    float *q, *sums, *lanes, *highest, *scores, *keys, *values;
    int32_t *first, *last; /* what each row sees */
} part;

static size_t padded(size_t n) { return (n + 15) / 16 * 16; }

size_t attention_scratch(const attention_job *job)
{
    size_t k_dim = (size_t)job->kv->k_dim, v_dim = (size_t)job->kv->v_dim;
    size_t scores = job->flash ? ATTENTION_BLOCK : job->span;
    return padded(job->step * k_dim) + padded(job->step * v_dim) + job->step * (KV_TILE + scores) +
           3 * padded(job->step) + k_dim * KV_TILE + ATTENTION_BLOCK * v_dim;
}

static float *take(float **scratch, size_t n)
{
    float *at = *scratch;
    *scratch += n;
    return at;
}

static void set_up(part *p, const attention_job *job, size_t head, size_t index, float *scratch)
{
    const ek_kv *kv = job->kv;
    size_t from = index * job->step, all = job->rows * job->group;
    p->job = job;
    p->head = head;
    p->rows = all - from < job->step ? all - from : job->step;
    p->k_dim = (size_t)kv->k_dim;
    p->v_dim = (size_t)kv->v_dim;
    p->q = take(&scratch, padded(job->step * p->k_dim));
    p->sums = take(&scratch, padded(job->step * p->v_dim));
    p->lanes = take(&scratch, job->step * KV_TILE);
    p->highest = take(&scratch, padded(job->step));
    p->first = (int32_t *)take(&scratch, padded(job->step));
    p->last = (int32_t *)take(&scratch, padded(job->step));
    p->keys = take(&scratch, p->k_dim * KV_TILE);
    p->values = take(&scratch, ATTENTION_BLOCK * p->v_dim);
    p->scores = scratch;
    for (size_t r = 0; r < p->rows; r++) {
        size_t token = (from + r) / job->group, member = (from + r) % job->group;
        const float *q = job->q + (token * job->heads + head * job->group + member) * p->k_dim;
        int32_t position = job->positions[token];
        memcpy(p->q + r * p->k_dim, q, p->k_dim * sizeof *q);
        p->last[r] = position;
        p->first[r] = job->window && position >= job->window ? position - job->window + 1 : 0;
        p->highest[r] = -__builtin_inff();
    }
    if (kv->k_rot)
        EK_CALL(ek_hadamard_rows)(p->q, p->rows * p->k_dim, (size_t)kv->k_rot);
    memset(p->sums, 0, p->rows * p->v_dim * sizeof *p->sums);
    memset(p->lanes, 0, p->rows * KV_TILE * sizeof *p->lanes);
}

/* The smallest range [from, to) that holds what rows r to r + n see. */
static void seen(const part *p, size_t r, size_t n, size_t *from, size_t *to)
{
    int32_t low = p->first[r], high = p->last[r];
    for (size_t i = r + 1; i < r + n; i++) {
        low = p->first[i] < low ? p->first[i] : low;
        high = p->last[i] > high ? p->last[i] : high;
    }
    *from = (size_t)low;
    *to = (size_t)high + 1;
}

static size_t group_size(const part *p, size_t r) { return p->rows - r < ATTENTION_ROWS ? p->rows - r : ATTENTION_ROWS; }

static void score_block(part *p, size_t block)
{
    size_t from, to;
    seen(p, 0, p->rows, &from, &to);
    for (size_t at = block; at < block + ATTENTION_BLOCK; at += KV_TILE) {
        if (at + KV_TILE <= from || at >= to)
            continue;
        const float *tile = EK_CALL(ek_kv_tile)(p->job->kv, p->head, at, p->keys);
        for (size_t r = 0, n; r < p->rows; r += n) {
            size_t low, high;
            n = group_size(p, r);
            seen(p, r, n, &low, &high);
            if (at + KV_TILE > low && at < high)
                EK_CALL(ek_score_tile)(tile, p->q + r * p->k_dim, n, p->k_dim, p->job->scale, p->job->softcap,
                                       p->scores + r * p->stride + (at - p->start), p->stride);
        }
    }
}

/* Exponentials of a row's scores at positions [from, to), a part of what it sees; hidden ones of the edge tiles are 0.
 * Sums made under a lower maximum are brought to the new one. */
static void weigh(part *p, size_t r, size_t from, size_t to)
{
    size_t low = from / KV_TILE * KV_TILE, high = (to + KV_TILE - 1) / KV_TILE * KV_TILE;
    float *scores = p->scores + r * p->stride - p->start;
    for (size_t i = low; i < from; i++)
        scores[i] = -__builtin_inff();
    for (size_t i = to; i < high; i++)
        scores[i] = -__builtin_inff();
    float highest = EK_CALL(ek_row_max)(scores + low, high - low);
    if (p->job->flash) {
        highest = highest > p->highest[r] ? highest : p->highest[r];
        float correction = p->highest[r] - highest;
        EK_CALL(ek_map_row)(EK_EXP, &correction, NULL, &correction, 1, 0);
        EK_CALL(ek_map_row)(EK_SCALE, p->lanes + r * KV_TILE, NULL, p->lanes + r * KV_TILE, KV_TILE, correction);
        EK_CALL(ek_map_row)(EK_SCALE, p->sums + r * p->v_dim, NULL, p->sums + r * p->v_dim, p->v_dim, correction);
        p->highest[r] = highest;
    }
    EK_CALL(ek_row_exp)(scores + low, high - low, highest, p->lanes + r * KV_TILE);
}

static void mix(part *p, const float *values, size_t origin, size_t r, size_t n, size_t from, size_t to)
{
    if (from < to)
        EK_CALL(ek_mix_rows)(values + (from - origin) * p->v_dim, p->scores + r * p->stride + (from - p->start),
                             p->stride, n, to - from, p->v_dim, p->sums + r * p->v_dim);
}

static size_t at_least(size_t a, size_t b) { return a > b ? a : b; }
static size_t at_most(size_t a, size_t b) { return a < b ? a : b; }

/* Adds the weighted values of a block: what all rows of a group see together, and before and after it row by row. */
static void mix_block(part *p, size_t block)
{
    size_t from, to;
    seen(p, 0, p->rows, &from, &to);
    from = at_least(from, block);
    to = at_most(to, block + ATTENTION_BLOCK);
    const float *values = EK_CALL(ek_kv_rows)(p->job->kv, p->head, from, to - from, p->values);
    for (size_t r = 0, n; r < p->rows; r += n) {
        n = group_size(p, r);
        size_t low = from, high = to;
        for (size_t i = r; i < r + n; i++) {
            low = at_least(low, (size_t)p->first[i]);
            high = at_most(high, (size_t)p->last[i] + 1);
        }
        if (low >= high)
            low = high = to; /* nothing together: all of it counts as before */
        for (size_t i = r; i < r + n; i++)
            mix(p, values, from, i, 1, at_least(from, (size_t)p->first[i]), at_most(low, (size_t)p->last[i] + 1));
        mix(p, values, from, r, n, low, high);
        for (size_t i = r; i < r + n; i++)
            mix(p, values, from, i, 1, high, at_most(to, (size_t)p->last[i] + 1));
    }
}

static void finish(part *p, size_t index)
{
    const attention_job *job = p->job;
    for (size_t r = 0; r < p->rows; r++) {
        const float *l = p->lanes + r * KV_TILE;
        float half[8];
        for (size_t i = 0; i < 8; i++)
            half[i] = l[i] + l[i + 8];
        float total = ((half[0] + half[4]) + (half[2] + half[6])) + ((half[1] + half[5]) + (half[3] + half[7]));
        size_t row = index * job->step + r, token = row / job->group, member = row % job->group;
        float *out = job->out + (token * job->heads + p->head * job->group + member) * p->v_dim;
        EK_CALL(ek_row_divide)(p->sums + r * p->v_dim, total, out, p->v_dim);
        if (job->kv->v_rot)
            EK_CALL(ek_hadamard_rows)(out, p->v_dim, (size_t)job->kv->v_rot);
    }
}

void attention_part(const attention_job *job, size_t head, size_t index, float *scratch)
{
    part p;
    size_t from, to;
    set_up(&p, job, head, index, scratch);
    seen(&p, 0, p.rows, &from, &to);
    p.start = from / ATTENTION_BLOCK * ATTENTION_BLOCK;
    p.stride = job->flash ? ATTENTION_BLOCK : job->span;
    if (!job->flash) {
        for (size_t block = p.start; block < to; block += ATTENTION_BLOCK)
            score_block(&p, block);
        for (size_t r = 0; r < p.rows; r++)
            weigh(&p, r, (size_t)p.first[r], (size_t)p.last[r] + 1);
    }
    size_t start = p.start;
    for (size_t block = start; block < to; block += ATTENTION_BLOCK) {
        if (job->flash) {
            p.start = block;
            score_block(&p, block);
            for (size_t r = 0; r < p.rows; r++) {
                size_t low = at_least(block, (size_t)p.first[r]);
                size_t high = at_most(block + ATTENTION_BLOCK, (size_t)p.last[r] + 1);
                if (low < high)
                    weigh(&p, r, low, high);
            }
        }
        mix_block(&p, block);
    }
    finish(&p, index);
}
