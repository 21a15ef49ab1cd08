/* SPDX-License-Identifier: Apache-2.0
 *
 * The pool is that of the int8 product (c_probes/mock/kernels/gemm_pool.c, which spins before it sleeps and survives a
 * fork); a second one would compete with it for the same cores.
 */
#include "pool.h"

#include "gemm_pool.h"

void ek_parallel(ek_task *task, void *context, size_t count, int threads)
{
    gemm_pool_run(task, context, count, threads);
}
