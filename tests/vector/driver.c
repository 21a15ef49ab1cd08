/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives the vector operations and attention without Python, on buffers of exactly the size that they need, with
 * numbers from a fixed generator; one line per case with a hash of the result's bits. Every machine, path and number of
 * threads must print the same.
 *
 *     driver [threads] [path]      path "paths": prints the path in use
 */
#include "attention.h"
#include "path.h"
#include "vector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 1;
static int threads = 1;

static float number(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (float)((int32_t)(state >> 40) % 20001 - 10000) * 0x1p-11f;
}

static void *need(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

static float *numbers(size_t n)
{
    float *x = need(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = number();
    return x;
}

static void show(const char *name, size_t a, size_t b, float *x, size_t n)
{
    const unsigned char *p = (const unsigned char *)x;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n * sizeof *x; i++)
        hash = (hash ^ p[i]) * 1099511628211u;
    printf("%s %zu %zu %016llx\n", name, a, b, (unsigned long long)hash);
    free(x);
}

static void maps(size_t n)
{
    for (int operation = EK_EXP; operation <= EK_GELU_TABLE_MUL; operation++) {
        float *x = numbers(n), *y = numbers(n), *out = need(n * sizeof *out);
        ek_map(operation, x, y, out, n, n, 3.0f, threads);
        show("map", (size_t)operation, n, out, n);
        free(x);
        free(y);
    }
}

static void rows(size_t m, size_t n)
{
    float *x = numbers(m * n), *y = numbers(m * n), *weight = numbers(n), *out = need(m * n * sizeof *out);
    ek_rms_norm(x, weight, out, m, n, 1e-5f, threads);
    ek_add_rms_norm(x, out, NULL, y, m, n, 1e-5f, threads);
    ek_map(EK_MUL, y, weight, y, m * n, n, 0, threads);
    ek_log_softmax(x, out, m, n, threads);
    printf("finite %d\n", ek_check_finite(out, m * n, threads));
    out[m * n - 1] = 1.0f / 0.0f;
    printf("finite %d\n", ek_check_finite(out, m * n, threads));
    show("sum", m, n, x, m * n);
    show("norm", m, n, y, m * n);
    show("softmax", m, n, out, m * n);
    free(weight);
}

static void rope(size_t m, size_t heads, size_t dim, size_t half, int neox)
{
    float *x = numbers(m * heads * dim), *cosines = need(m * half * 4), *sines = need(m * half * 4);
    float *factors = numbers(half), *mix = need(half * 4);
    int64_t *positions = need(m * sizeof *positions);
    for (size_t i = 0; i < half; i++) {
        factors[i] = factors[i] * factors[i] + 1.0f;
        mix[i] = (float)i / (float)half;
    }
    for (size_t i = 0; i < m; i++)
        positions[i] = (int64_t)(i * 7919);
    ek_rope_tables(positions, m, half, 0.75f, 0.25f, neox ? factors : NULL, neox ? mix : NULL, 1.1f, cosines, sines);
    ek_rope(x, cosines, sines, m, heads, dim, half, neox, threads);
    show("rope", dim, half, x, m * heads * dim);
    free(cosines);
    free(sines);
    free(factors);
    free(mix);
    free(positions);
}

static void *cells(int type, size_t heads, size_t dim, size_t capacity, uint16_t **scales)
{
    size_t bits = type == EK_KV_F32 ? 32 : type == EK_KV_F16 ? 16 : type == EK_KV_Q8_0 ? 8 : 4;
    *scales = need(type >= EK_KV_Q8_0 ? heads * capacity * (dim / 32) * 2 : 0);
    return need(heads * capacity * dim * bits / 8);
}

/* Tokens in batches of 1, 2, ... through a ring of `capacity` cells, then a last look by all of the last batch. */
static void attention(int k_type, int v_type, size_t group, int32_t k_dim, int32_t v_dim, int32_t window, int flash)
{
    enum { HEADS = 2, CAPACITY = 128, TOKENS = 171 };
    int rotate = k_type >= EK_KV_Q8_0 && k_dim % 64 == 0 && v_dim % 64 == 0;
    ek_kv kv = {.k_type = k_type, .v_type = v_type, .heads = HEADS, .k_dim = k_dim, .v_dim = v_dim,
                .capacity = window ? CAPACITY : 192, .k_rot = rotate ? 64 : 0, .v_rot = rotate ? 64 : 0};
    kv.k_codes = cells(k_type, HEADS, (size_t)k_dim, (size_t)kv.capacity, &kv.k_scales);
    kv.v_codes = cells(v_type, HEADS, (size_t)v_dim, (size_t)kv.capacity, &kv.v_scales);
    size_t heads = HEADS * group, done = 0, width = heads * (size_t)v_dim;
    float *all = need(TOKENS * width * sizeof *all);
    for (size_t n = 1; done < TOKENS; n++) {
        n = n < TOKENS - done ? n : TOKENS - done;
        float *q = numbers(n * heads * (size_t)k_dim), *k = numbers(n * HEADS * (size_t)k_dim);
        float *v = numbers(n * HEADS * (size_t)v_dim);
        int32_t *positions = need(n * sizeof *positions);
        for (size_t i = 0; i < n; i++)
            positions[i] = (int32_t)(done + i);
        ek_kv_append(&kv, k, v, positions, n, threads);
        if (ek_attention(&kv, q, positions, n, heads, 0.02f, flash ? 5.0f : 0.0f, window, flash, all + done * width, threads))
            abort();
        done += n;
        free(q);
        free(k);
        free(v);
        free(positions);
    }
    char name[64];
    snprintf(name, sizeof name, "attention %d %d group %zu dim %d window %d flash %d", k_type, v_type, group, k_dim, window,
             flash);
    show(name, heads, (size_t)v_dim, all, TOKENS * width);
    free(kv.k_codes);
    free(kv.v_codes);
    free(kv.k_scales);
    free(kv.v_scales);
}

int main(int argc, char **argv)
{
    threads = argc > 1 ? atoi(argv[1]) : 1;
    if (argc > 2 && !strcmp(argv[2], "paths")) {
        puts(ek_path());
        return 0;
    }
    if (argc > 2 && ek_use_path(argv[2]))
        return 1;
    static const size_t lengths[] = {1, 7, 16, 33, 20001};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        maps(lengths[i]);
        rows(i + 1, lengths[i]);
    }
    rope(3, 2, 64, 32, 1);
    rope(3, 5, 70, 17, 0);
    for (int type = EK_KV_F32; type <= EK_KV_Q4_0; type++)
        for (int flash = 0; flash < 2; flash++) {
            attention(type, (type + flash) % 4, 3, 64, 64, 0, flash);
            attention(type, type, 1, 128, 32, 50, flash);
        }
    attention(EK_KV_F16, EK_KV_F32, 5, 72, 8, 0, 0);
    attention(EK_KV_F32, EK_KV_F16, 2, 8, 40, 9, 1);
    return 0;
}
