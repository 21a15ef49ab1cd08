/* SPDX-License-Identifier: Apache-2.0
 *
 * Norms, log softmax and rope over rows, several rows of about 8192 values to a task.
 */
#include <stdatomic.h>

#include "levels.h"
#include "pool.h"
#include "vector.h"
#include "vector_lanes.h"

EK_TABLE(ek_norm_row, ek_norm_row)
EK_TABLE(ek_softmax_row, ek_softmax_row)
EK_TABLE(ek_finite_row, ek_finite_row)
EK_TABLE(ek_map_row, ek_map_row)
EK_TABLE(ek_rotate_head, ek_rotate_pairs)
EK_TABLE(ek_rotate_head, ek_rotate_halves)

enum { TASK_VALUES = 8192 };

typedef struct {
    float *x, *out;
    const float *y, *weight, *cosines, *sines;
    size_t rows, n, step, heads, half;
    float eps;
    int neox;
    atomic_int bad;
} row_job;

static void run_rows(ek_task *task, row_job *job, int threads)
{
    size_t length = job->n * (job->heads ? job->heads : 1);
    job->step = length < TASK_VALUES ? TASK_VALUES / (length ? length : 1) : 1;
    size_t count = (job->rows + job->step - 1) / job->step;
    ek_parallel(task, job, count, count > 1 ? threads : 1);
}

static size_t last_row(const row_job *job, size_t index)
{
    size_t end = (index + 1) * job->step;
    return end < job->rows ? end : job->rows;
}

static void norm_rows(void *context, size_t index)
{
    const row_job *job = context;
    for (size_t row = index * job->step; row < last_row(job, index); row++) {
        float *x = job->x + row * job->n;
        if (job->y)
            EK_CALL(ek_map_row)(EK_ADD, x, job->y + row * job->n, x, job->n, 0);
        EK_CALL(ek_norm_row)(x, job->weight, job->out + row * job->n, job->n, job->eps);
    }
}

void ek_rms_norm(const float *x, const float *weight, float *out, size_t rows, size_t n, float eps, int threads)
{
    ek_add_rms_norm((float *)x, NULL, weight, out, rows, n, eps, threads);
}

void ek_add_rms_norm(float *x, const float *y, const float *weight, float *out, size_t rows, size_t n, float eps,
                     int threads)
{
    row_job job = {.x = x, .y = y, .weight = weight, .out = out, .rows = rows, .n = n, .eps = eps};
    run_rows(norm_rows, &job, threads);
}

static void softmax_rows(void *context, size_t index)
{
    const row_job *job = context;
    for (size_t row = index * job->step; row < last_row(job, index); row++)
        EK_CALL(ek_softmax_row)(job->x + row * job->n, job->out + row * job->n, job->n);
}

void ek_log_softmax(const float *x, float *out, size_t rows, size_t n, int threads)
{
    row_job job = {.x = (float *)x, .out = out, .rows = rows, .n = n};
    if (n)
        run_rows(softmax_rows, &job, threads);
}

static void check_rows(void *context, size_t index)
{
    row_job *job = context;
    size_t from = index * job->step, to = last_row(job, index);
    if (!EK_CALL(ek_finite_row)(job->x + from, to - from))
        atomic_store(&job->bad, 1);
}

int ek_check_finite(const float *x, size_t n, int threads)
{
    row_job job = {.x = (float *)x, .rows = n, .n = 1};
    run_rows(check_rows, &job, threads);
    return !atomic_load(&job.bad);
}

static void rotate_rows(void *context, size_t index)
{
    const row_job *job = context;
    for (size_t row = index * job->step; row < last_row(job, index); row++) {
        const float *cosines = job->cosines + row * job->half, *sines = job->sines + row * job->half;
        for (size_t head = 0; head < job->heads; head++) {
            float *x = job->x + (row * job->heads + head) * job->n;
            if (job->neox)
                EK_CALL(ek_rotate_halves)(x, cosines, sines, job->half);
            else
                EK_CALL(ek_rotate_pairs)(x, cosines, sines, job->half);
        }
    }
}

void ek_rope(float *x, const float *cosines, const float *sines, size_t rows, size_t heads, size_t dim, size_t half,
             int neox, int threads)
{
    row_job job = {.x = x, .cosines = cosines, .sines = sines, .rows = rows, .n = dim, .heads = heads, .half = half,
                   .neox = neox};
    run_rows(rotate_rows, &job, threads);
}
