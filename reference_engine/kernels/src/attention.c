/* SPDX-License-Identifier: Apache-2.0
 *
 * Cuts attention into tasks of one head of keys and some query rows. No cut changes a bit: each row has its own order.
 */
#include "attention.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "attention_task.h"
#include "pool.h"

enum { SCORES = 1 << 17, MOST_ROWS = 96, SMALL = 200000 };

typedef struct {
    attention_job job;
    size_t tasks, scratch;
    float *memory;
    atomic_size_t next;
} attention_run;

/* The caller's scratch stays with its thread: fresh pages at every call would cost more than the arithmetic. */
typedef struct {
    size_t floats;
    float *memory;
} scratch;

static pthread_key_t scratch_key;
static int scratch_key_fails;

static void drop(void *kept)
{
    free(((scratch *)kept)->memory);
    free(kept);
}

static void make_key(void) { scratch_key_fails = pthread_key_create(&scratch_key, drop); }

static float *scratch_of_thread(size_t floats)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_key);
    if (scratch_key_fails)
        return NULL;
    scratch *kept = pthread_getspecific(scratch_key);
    if (!kept) {
        kept = calloc(1, sizeof *kept);
        if (!kept || pthread_setspecific(scratch_key, kept)) {
            free(kept);
            return NULL;
        }
    }
    if (kept->floats < floats) {
        free(kept->memory);
        kept->memory = NULL;
        kept->floats = 0;
        if (posix_memalign((void **)&kept->memory, 64, floats * sizeof(float))) {
            kept->memory = NULL;
            return NULL;
        }
        kept->floats = floats;
    }
    return kept->memory;
}

/* One slot of scratch takes task after task, the longest first. */
static void run_slot(void *context, size_t slot)
{
    attention_run *run = context;
    size_t index;
    while ((index = atomic_fetch_add(&run->next, 1)) < run->tasks) {
        size_t task = run->tasks - 1 - index, heads = (size_t)run->job.kv->heads;
        attention_part(&run->job, task % heads, task / heads, run->memory + slot * run->scratch);
    }
}

static size_t smaller(size_t a, size_t b) { return a < b ? a : b; }

/* Query rows of one task: as many as share decoded keys well, as few as give every thread its part. */
static size_t rows_of_task(size_t rows, size_t heads, size_t span, size_t threads)
{
    size_t most = SCORES / span > ATTENTION_ROWS ? SCORES / span : ATTENTION_ROWS;
    size_t step = smaller(rows, smaller(most, MOST_ROWS));
    size_t fair = (rows * heads + 3 * threads - 1) / (3 * threads);
    if (threads > 1 && fair < step)
        step = fair > 2 ? fair : smaller(rows, 2);
    return step > ATTENTION_ROWS ? step / ATTENTION_ROWS * ATTENTION_ROWS : step;
}

int ek_attention(const ek_kv *kv, const float *q, const int32_t *positions, size_t rows, size_t heads, float scale,
                 float softcap, int32_t window, int flash, float *out, int threads)
{
    if (!rows || !heads)
        return 0;
    size_t group = heads / (size_t)kv->heads, low = SIZE_MAX, high = 0;
    for (size_t i = 0; i < rows; i++) {
        size_t last = (size_t)positions[i], width = (size_t)window;
        size_t first = window && last >= width ? last - width + 1 : 0;
        low = first < low ? first : low;
        high = last > high ? last : high;
    }
    size_t span = (high / ATTENTION_BLOCK - low / ATTENTION_BLOCK + 1) * ATTENTION_BLOCK;
    if ((double)rows * (double)heads * (double)span * (kv->k_dim + kv->v_dim) < SMALL)
        threads = 1;
    size_t slots = threads > 1 ? (size_t)threads : 1;
    attention_run run = {.job = {.kv = kv, .q = q, .positions = positions, .out = out, .rows = rows, .heads = heads,
                                 .group = group, .scale = scale, .softcap = softcap, .window = window, .flash = flash,
                                 .span = span}};
    run.job.step = rows_of_task(rows * group, (size_t)kv->heads, flash ? ATTENTION_BLOCK : span, slots);
    run.job.parts = (rows * group + run.job.step - 1) / run.job.step;
    run.tasks = run.job.parts * (size_t)kv->heads;
    slots = smaller(slots, run.tasks);
    run.scratch = (attention_scratch(&run.job) + 15) / 16 * 16;
    run.memory = scratch_of_thread(run.scratch * slots);
    if (!run.memory)
        return -1;
    ek_parallel(run_slot, &run, slots, (int)slots);
    return 0;
}
