/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel path runs: by the CPU, by RKNN_MOCK_KERNEL, or forced by a test.
 */
#include "gemm_path.h"

#include "gemm_s8.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Best first: the first available one is the automatic choice. Plain C is always available. */
static const struct gemm_path *const paths[] = {
#if defined(__x86_64__)
    &gemm_path_avx512vnni, &gemm_path_avxvnni, &gemm_path_avx2,
#elif defined(__aarch64__)
    &gemm_path_neon_dot, &gemm_path_neon,
#endif
    &gemm_path_c,
};
enum { PATHS = sizeof paths / sizeof paths[0] };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const struct gemm_path *chosen;               /* written once by choose(), NULL: env_error holds why */
static char env_error[400];                          /* written once by choose() */
static _Atomic(const struct gemm_path *) forced_path; /* NULL: not forced */

static const struct gemm_path *find(const char *name)
{
    for (int i = 0; i < PATHS; i++)
        if (!strcmp(paths[i]->name, name))
            return paths[i];
    return NULL;
}

static void explain(const char *name, int known)
{
    int n = snprintf(env_error, sizeof env_error, "RKNN_MOCK_KERNEL=%.60s: %s; this CPU has", name,
                     known ? "this CPU lacks that kernel path" : "no such kernel path in this build");
    for (int i = 0; i < PATHS && n >= 0 && (size_t)n < sizeof env_error; i++)
        if (paths[i]->available())
            n += snprintf(env_error + n, sizeof env_error - (size_t)n, " %s", paths[i]->name);
}

static void choose(void)
{
    const char *name = getenv("RKNN_MOCK_KERNEL");
    if (name && *name) {
        const struct gemm_path *p = find(name);
        if (p && p->available())
            chosen = p;
        else
            explain(name, p != NULL);
        return;
    }
    int i = 0;
    while (!paths[i]->available())
        i++;
    chosen = paths[i];
}

const struct gemm_path *gemm_path_current(void)
{
    const struct gemm_path *p = atomic_load_explicit(&forced_path, memory_order_acquire);
    if (p)
        return p;
    pthread_once(&once, choose);
    return chosen;
}

const char *mock_gemm_s8_path(void)
{
    const struct gemm_path *p = gemm_path_current();
    return p ? p->name : NULL;
}

const char *mock_gemm_s8_error(void)
{
    return gemm_path_current() ? NULL : env_error;
}

int mock_gemm_s8_force(const char *name)
{
    const struct gemm_path *p = name ? find(name) : NULL;
    if (name && (!p || !p->available()))
        return -1;
    atomic_store_explicit(&forced_path, p, memory_order_release);
    return 0;
}
