/* SPDX-License-Identifier: Apache-2.0
 *
 * A few worker threads shared by all callers. Private to this folder.
 */
#ifndef MOCK_GEMM_POOL_H
#define MOCK_GEMM_POOL_H

#include <stddef.h>

typedef void gemm_task(void *context, size_t index);

/* Calls task(context, i) once for every i below `tasks`, on the caller and on up to threads - 1 workers, and
 * returns when all are done. Never fails: with no worker to be had the caller does everything. */
void gemm_pool_run(gemm_task *task, void *context, size_t tasks, int threads);

#endif
