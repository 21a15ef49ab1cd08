/* SPDX-License-Identifier: Apache-2.0
 *
 * One call of attention, and the part of it that one task does: some query rows of one head of keys.
 */
#ifndef ENGINE_ATTENTION_TASK_H
#define ENGINE_ATTENTION_TASK_H

#include "attention_lanes.h"

typedef struct {
    const ek_kv *kv;
    const float *q;
    const int32_t *positions;
    float *out;
    size_t rows, heads, group; /* group: query heads per head of keys */
    float scale, softcap;
    int32_t window;
    int flash;
    size_t step;  /* query rows (token and head) of one task */
    size_t parts; /* tasks of one head of keys */
    size_t span;  /* positions that a task may look at, in whole blocks */
} attention_job;

/* Floats of scratch that a task needs. */
size_t attention_scratch(const attention_job *job);
/* Query rows from part * step on of one head of keys. */
void attention_part(const attention_job *job, size_t head, size_t part, float *scratch);

#endif
