/* SPDX-License-Identifier: Apache-2.0
 *
 * Which kernel path runs: by the CPU, by RKNN_MOCK_KERNEL, or forced by a test.
 */
#include "gemm_path.h"

#include "gemm_s8.h"

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

/* Lock-free, so that the child of a fork never waits for a thread it does not have. Threads that choose at the same
 * moment come to the same answer. */
static _Atomic(const struct gemm_path *) forced;    /* NULL: not forced */
static _Atomic(const struct gemm_path *) automatic; /* NULL: not chosen yet, or env_error says why there is none */
static _Atomic(const char *) env_error;

static const struct gemm_path *find(const char *name)
{
    for (int i = 0; i < PATHS; i++)
        if (!strcmp(paths[i]->name, name))
            return paths[i];
    return NULL;
}

/* Publishes the sentence once; it stays for the life of the library. */
static void explain(const char *name, int known)
{
    enum { SIZE = 400 };
    char *text = malloc(SIZE);
    const char *none = NULL, *out_of_memory = "RKNN_MOCK_KERNEL names no kernel path that can be used";
    if (!text) {
        atomic_compare_exchange_strong(&env_error, &none, out_of_memory);
        return;
    }
    int n = snprintf(text, SIZE, "RKNN_MOCK_KERNEL=%.60s: %s; this CPU has", name,
                     known ? "this CPU lacks that kernel path" : "no such kernel path in this build");
    for (int i = 0; i < PATHS && n >= 0 && n < SIZE; i++)
        if (paths[i]->available())
            n += snprintf(text + n, SIZE - (size_t)n, " %s", paths[i]->name);
    if (!atomic_compare_exchange_strong(&env_error, &none, text))
        free(text);
}

static const struct gemm_path *choose(void)
{
    const char *name = getenv("RKNN_MOCK_KERNEL");
    if (name && *name) {
        const struct gemm_path *p = find(name);
        if (p && p->available())
            return p;
        explain(name, p != NULL);
        return NULL;
    }
    int i = 0;
    while (!paths[i]->available())
        i++;
    return paths[i];
}

const struct gemm_path *gemm_path_current(void)
{
    const struct gemm_path *p = atomic_load(&forced);
    if (!p)
        p = atomic_load(&automatic);
    if (!p && !atomic_load(&env_error)) {
        p = choose();
        atomic_store(&automatic, p);
    }
    return p;
}

const char *mock_gemm_s8_path(void)
{
    const struct gemm_path *p = gemm_path_current();
    return p ? p->name : NULL;
}

const char *mock_gemm_s8_error(void)
{
    return gemm_path_current() ? NULL : atomic_load(&env_error);
}

int mock_gemm_s8_force(const char *name)
{
    const struct gemm_path *p = name ? find(name) : NULL;
    if (name && (!p || !p->available()))
        return -1;
    atomic_store(&forced, p);
    return 0;
}
