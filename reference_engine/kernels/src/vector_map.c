/* SPDX-License-Identifier: Apache-2.0
 *
 * Splits element-wise operations into chunks for the pool; small ones stay in the caller.
 */
#include "vector.h"

#include <pthread.h>

#include "levels.h"
#include "pool.h"
#include "vector_lanes.h"

EK_TABLE(ek_map_row, ek_map_row)
EK_TABLE(ek_from_halves, ek_halves_to_floats)
EK_TABLE(ek_to_halves, ek_floats_to_halves)

enum { CHUNK = 8192 };

typedef struct {
    int operation;
    const float *x, *y;
    float *out;
    size_t n, period, chunk;
    float s;
} map_job;

static void map_chunk(void *context, size_t index)
{
    const map_job *job = context;
    size_t from = index * job->chunk, to = from + job->chunk < job->n ? from + job->chunk : job->n;
    if (job->period == job->n) {
        EK_CALL(ek_map_row)(job->operation, job->x + from, job->y + from, job->out + from, to - from, job->s);
        return;
    }
    while (from < to) { /* y begins anew in each period */
        size_t at = from % job->period, part = job->period - at < to - from ? job->period - at : to - from;
        EK_CALL(ek_map_row)(job->operation, job->x + from, job->y + at, job->out + from, part, job->s);
        from += part;
    }
}

void ek_map(int operation, const float *x, const float *y, float *out, size_t n, size_t period, float s, int threads)
{
    if (!n)
        return;
    map_job job = {operation, x, operation >= EK_ADD ? y : x, out, n, operation >= EK_ADD ? period : n, CHUNK, s};
    ek_parallel(map_chunk, &job, (n + CHUNK - 1) / CHUNK, n > CHUNK ? threads : 1);
}

static float gelu_table[1 << 16];

static void fill_gelu_table(void)
{
    static float x[1 << 16];
    static uint16_t bits[1 << 16];
    const size_t n = 1 << 16;
    for (size_t i = 0; i < n; i++)
        bits[i] = (uint16_t)i;
    EK_CALL(ek_halves_to_floats)(bits, x, n);
    for (size_t i = 0; i < n; i++)
        gelu_table[i] = 0.79788456080286535588f * x[i] * (1.0f + 0.044715f * x[i] * x[i]);
    EK_CALL(ek_map_row)(EK_TANH, gelu_table, NULL, gelu_table, n, 0);
    for (size_t i = 0; i < n; i++)
        gelu_table[i] = 0.5f * x[i] * (1.0f + gelu_table[i]);
    EK_CALL(ek_floats_to_halves)(gelu_table, bits, n);
    EK_CALL(ek_halves_to_floats)(bits, gelu_table, n);
}

const float *vector_gelu_table(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_gelu_table);
    return gelu_table;
}
