/* SPDX-License-Identifier: Apache-2.0
 *
 * One choice for the int8 product and for the levels of everything else.
 */
#include "path.h"

#include "gemm_s8.h"
#include "levels.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

enum { ABI = 2 };

/* Best first. A level needs more of the CPU than the int8 product of its path does. */
static const struct {
    const char *name;
    int level;
} paths[] = {{"avx512-vnni", EK_AVX512}, {"avx-vnni", EK_AVX2}, {"avx2", EK_AVX2},
             {"neon-dot", EK_BASE},      {"neon", EK_BASE},     {"c", EK_BASE}};
enum { PATHS = sizeof paths / sizeof paths[0] };

static atomic_int chosen = -1;

static int level_runs(int level)
{
#if defined(__x86_64__)
    if (level == EK_AVX512)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma");
    if (level == EK_AVX2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#endif
    return level == EK_BASE;
}

int ek_use_path(const char *name)
{
    for (int i = 0; i < PATHS; i++)
        if ((!name || !*name || !strcmp(name, paths[i].name)) && level_runs(paths[i].level) &&
            !mock_gemm_s8_force(paths[i].name)) {
            atomic_store(&chosen, i);
            return 0;
        }
    return -1;
}

/* At load: no environment variable of the mock decides here, and no call finds the choice unmade. */
__attribute__((constructor)) static void choose_best(void)
{
    (void)ek_use_path(NULL);
}

const char *ek_path(void)
{
    return paths[atomic_load(&chosen)].name;
}

int ek_level(void)
{
    return paths[atomic_load_explicit(&chosen, memory_order_relaxed)].level;
}

int ek_abi(void)
{
    return ABI;
}
