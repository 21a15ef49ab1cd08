/* SPDX-License-Identifier: Apache-2.0
 *
 * The one thread pool of the engine: the int8 product, the vector operations and attention all share its workers.
 */
#ifndef ENGINE_POOL_H
#define ENGINE_POOL_H

#include <stddef.h>

typedef void ek_task(void *context, size_t index);

/* Calls task(context, i) once for every i below `count`, on the caller and on up to threads - 1 workers, and returns
 * when all are done. Workers take indices from one counter in rising order and spin for about 50 us before they sleep.
 * threads of 1 or less stays in the caller. Never fails: with no worker to be had the caller does everything. May be
 * called from several threads at once and in the child of a fork; not from inside a task with threads above 1. */
void ek_parallel(ek_task *task, void *context, size_t count, int threads);

#endif
