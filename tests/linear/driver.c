/* SPDX-License-Identifier: Apache-2.0
 *
 * Drives the kernel library without Python: products of every kind on numbers from a fixed generator, one line per
 * case with a hash of the result's bits. Every machine, path and number of threads must print the same.
 *
 *     driver [threads] [path]      path "paths": prints the path in use
 */
#include "dequant.h"
#include "linear.h"
#include "path.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint32_t next(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33);
}

/* A float of moderate size from integer operations and one exact conversion. */
static float number(void)
{
    return (float)((int32_t)(next() % 20001) - 10000) * (next() % 16 ? 0x1p-12f : 0x1p-6f);
}

static uint64_t hash_of(const void *data, size_t bytes)
{
    const unsigned char *p = data;
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ p[i]) * 1099511628211u;
    return hash;
}

static void *need(size_t bytes)
{
    void *p = calloc(1, bytes ? bytes : 1);
    if (!p)
        abort();
    return p;
}

struct type {
    int number, elements, bytes, scale[2];
};
static const struct type types[] = {{0, 1, 4, {-1, -1}},      {8, 32, 34, {0, -1}},     {3, 32, 20, {0, 2}},
                                    {14, 256, 210, {208, -1}}, {12, 256, 144, {0, 2}}, {10, 256, 84, {80, 82}},
                                    {11, 256, 110, {108, -1}}, {7, 32, 24, {0, 2}},     {23, 256, 136, {0, -1}}};
enum { TYPES = sizeof types / sizeof types[0] };

/* n rows of k elements, as a file would hold them; scales are fp16 numbers around 0.01. */
static uint8_t *rows_of(const struct type *t, int64_t n, int64_t k)
{
    size_t blocks = (size_t)(n * k / t->elements);
    uint8_t *data = need(blocks * (size_t)t->bytes);
    for (size_t b = 0; b < blocks; b++) {
        uint8_t *at = data + b * (size_t)t->bytes;
        float value = number();
        for (int i = 0; i < t->bytes; i++)
            at[i] = (uint8_t)next();
        if (!t->number)
            memcpy(at, &value, sizeof value);
        for (int i = 0; i < 2; i++)
            if (t->scale[i] >= 0)
                at[t->scale[i] + 1] = (uint8_t)(0x20 | (next() & 3));
    }
    return data;
}

struct shape {
    int64_t M, N, K, k_limit;
    int n_parts, block; /* block: of the transform, 1 without */
};
static const struct shape shapes[] = {{1, 67, 256, 256, 1, 1},  {3, 96, 512, 160, 3, 1},  {13, 33, 256, 96, 2, 256},
                                      {26, 130, 768, 768, 3, 1}, {2, 48, 512, 200, 1, 64}, {5, 16, 256, 64, 1, 1}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static ek_weight *weight_of(ek_arena *arena, const ek_recipe *r, const struct type *t, const uint8_t *rows, int threads)
{
    ek_weight *w = ek_weight_new(r, arena);
    if (!w)
        abort();
    int64_t row_bytes = r->n_in / t->elements * t->bytes, half = r->n_out / 2;
    for (int pass = 0; pass < ek_weight_passes(w); pass++) {
        /* Two calls, in the order that a file would not give. */
        if (ek_weight_feed(w, pass, t->number, rows + half * row_bytes, row_bytes, half, r->n_out - half, threads) != -1 ||
            ek_weight_feed(w, pass, t->number, rows, row_bytes, 0, half, threads) != -1)
            abort();
        ek_weight_settle(w, pass);
    }
    return w;
}

/* The whole product against its phases: the same bits, or the program ends here. */
static void check_phases(const ek_weight *w, const ek_recipe *r, const float *x, int64_t M, const float *wanted, int threads)
{
    int parts = r->scale_kind == 3 ? r->n_parts : 1;
    float *out = need((size_t)(M * r->n_out) * sizeof *out), *scale = need((size_t)M * sizeof *scale);
    int64_t counter[5] = {0};
    void *q = need((size_t)(M * r->k_op) * 2), *sums = need((size_t)(M * r->n_out) * 4);
    for (int k = 0; k < r->k_parts; k++)
        for (int part = 0; part < parts; part++) {
            int64_t n0 = parts > 1 ? r->n_cuts[part] : 0, n1 = parts > 1 ? r->n_cuts[part + 1] : r->n_out;
            if (ek_linear_prepare(w, k * parts + part, x, M, q, scale, counter, threads) != -1 ||
                ek_linear_sums(w, k * parts + part, q, M, sums, threads) != -1)
                abort();
            for (int64_t i = 0; r->bits == 4 && i < M * (n1 - n0); i++) {
                int32_t *sum = (int32_t *)sums + i;
                *sum = r->saturate16 ? (*sum > 32767 ? 32767 : *sum < -32768 ? -32768 : *sum) : (int16_t)(*sum & 0xffff);
            }
            ek_linear_collect(w, k, n0, n1, sums, scale, M, out, threads);
        }
    if (memcmp(out, wanted, (size_t)(M * r->n_out) * sizeof *out)) {
        fprintf(stderr, "the phases do not give the bits of the whole product\n");
        exit(1);
    }
    free(out);
    free(scale);
    free(q);
    free(sums);
}

static void quantized_case(int bits, int kind, const struct shape *s, const struct type *t, int flags, int threads)
{
    int64_t k_cuts[16] = {0}, n_cuts[8] = {0};
    int8_t signs[1024];
    ek_recipe r = {.bits = bits, .scale_kind = kind, .clamp = flags & 1, .fma = flags >> 1 & 1, .saturate16 = flags >> 2 & 1,
                   .a_clip = flags & 1 ? 0.9f : 1.0f, .b_clip = flags & 2 ? 0.93f : 1.0f, .n_in = s->K, .n_out = s->N,
                   .k_op = s->K, .block = s->block, .n_parts = s->n_parts, .k_cuts = k_cuts, .n_cuts = n_cuts};
    for (int64_t k = 0; k < s->K; k_cuts[++r.k_parts] = k)
        k = k + s->k_limit < s->K ? k + s->k_limit : s->K;
    for (int part = 1; part <= s->n_parts; part++)
        n_cuts[part] = part == s->n_parts ? s->N : s->N / s->n_parts / 16 * 16 * part;
    for (int64_t i = 0; i < s->K; i++)
        signs[i] = next() & 1 ? 1 : -1;
    r.signs = s->block > 1 ? signs : NULL;
    uint8_t *rows = rows_of(t, s->N, s->K);
    float *x = need((size_t)(s->M * s->K) * sizeof *x), *out = need((size_t)(s->M * s->N) * sizeof *out);
    for (int64_t i = 0; i < s->M * s->K; i++)
        x[i] = number();
    ek_arena *arena = flags & 1 ? ek_arena_new(1 << 20) : NULL;
    ek_weight *w = weight_of(arena, &r, t, rows, threads);
    ek_arena_free(arena); /* the weight still holds it */
    int64_t counter[5] = {0}, *counters[] = {counter};
    const ek_weight *weights[] = {w};
    if (ek_linear_quantized(weights, &out, counters, 1, x, s->M, threads) != -1)
        abort();
    check_phases(w, &r, x, s->M, out, threads);
    printf("bits %d scale %d shape %ld type %d flags %d: %016llx rim %lld clipped %lld\n", bits, kind, (long)(s - shapes),
           t->number, flags, (unsigned long long)hash_of(out, (size_t)(s->M * s->N) * sizeof *out), (long long)counter[3],
           (long long)counter[4]);
    x[s->M * s->K - 1] = -__builtin_inff();
    if (ek_linear_quantized(weights, &out, counters, 1, x, s->M, threads) != s->M - 1)
        abort();
    ek_weight_free(w);
    free(rows);
    free(x);
    free(out);
}

static void float_case(const struct shape *s, const struct type *t, int threads)
{
    int64_t row_bytes = s->K / t->elements * t->bytes;
    uint8_t *rows = rows_of(t, s->N, s->K);
    float *x = need((size_t)(s->M * s->K) * sizeof *x), *out = need((size_t)(s->M * s->N) * sizeof *out);
    for (int64_t i = 0; i < s->M * s->K; i++)
        x[i] = number();
    if (ek_linear_float(t->number, rows, row_bytes, s->N, s->K, x, s->M, out, threads) != -1)
        abort();
    printf("float shape %ld type %d: %016llx\n", (long)(s - shapes), t->number,
           (unsigned long long)hash_of(out, (size_t)(s->M * s->N) * sizeof *out));
    free(rows);
    free(x);
    free(out);
}

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 1, flags = 0;
    if (argc > 2 && !strcmp(argv[2], "paths")) {
        puts(ek_path());
        return 0;
    }
    if (argc > 2 && ek_use_path(argv[2])) {
        fprintf(stderr, "this CPU lacks that path\n");
        return 1;
    }
    state = 20260101;
    for (int bits = 4; bits <= 16; bits *= 2)
        for (int kind = 0; kind < (bits == 16 ? 1 : 4); kind++)
            for (int s = 0; s < SHAPES; s++, flags = (flags + 1) % 8)
                quantized_case(bits, kind, shapes + s, types + (s + kind + bits) % TYPES, flags, threads);
    for (int s = 0; s < SHAPES; s++)
        for (int t = 0; t < TYPES; t++)
            float_case(shapes + s, types + t, threads);
    return 0;
}
