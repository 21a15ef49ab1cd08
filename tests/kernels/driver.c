/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the int8 kernels where Python does not reach: under sanitizers, under qemu, across fork and dlclose.
 *
 *   driver path                 the path in use, or "error: " and the sentence
 *   driver vectors [PATH]       one line "M K N fill threads checksum" per case of a fixed grid
 *   driver race                 many threads pack, multiply and free at once; each result against a plain loop
 *   driver fork                 children forked while other threads multiply, multiply too
 *   driver tight                address space used up: no worker, then no memory
 *   driver reload LIBRARY       dlopen, multiply, dlclose, many times
 */
#include "gemm_s8.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAD = 3, SENTINEL = 0x5a5a5a5a };

/* Buffers of the exact size, so that AddressSanitizer sees a read past the last element. */
struct product {
    size_t M, K, N;
    int8_t *A, *B;
    int32_t *C;
};

static void die(const char *why)
{
    fprintf(stderr, "driver: %s\n", why);
    exit(1);
}

static void *get(size_t bytes)
{
    void *p = malloc(bytes ? bytes : 1);
    if (!p)
        die("out of memory");
    return p;
}

/* The generator the tests repeat in Python: x <- 1664525 x + 1013904223 modulo 2^32, byte = x >> 24. */
static void fill(int8_t *out, size_t count, uint32_t seed, char how)
{
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525u + 1013904223u;
        out[i] = (int8_t)(how == 'r' ? (seed >> 24) ^ 0x80 : 0x80);
    }
}

static struct product make(size_t M, size_t K, size_t N, char how)
{
    struct product p = {M, K, N, get(M * K), get(K * N), get(M * (N + PAD) * 4)};
    fill(p.A, M * K, (uint32_t)(M * 7919 + K), how);
    fill(p.B, K * N, (uint32_t)(N * 104729 + K), how);
    for (size_t i = 0; i < M * (N + PAD); i++)
        p.C[i] = SENTINEL;
    return p;
}

static void drop(struct product *p)
{
    free(p->A);
    free(p->B);
    free(p->C);
}

static int multiply(struct product *p, int threads)
{
    mock_gemm_b *b = mock_gemm_s8_pack(p->B, p->K, p->N);
    if (!b)
        die("pack failed");
    int rc = mock_gemm_s8(p->A, p->K, b, p->C, p->N + PAD, p->M, threads);
    mock_gemm_s8_free(b);
    return rc;
}

static int exact(const struct product *p)
{
    for (size_t m = 0; m < p->M; m++)
        for (size_t n = 0; n < p->N + PAD; n++) {
            uint32_t sum = n < p->N ? 0 : SENTINEL;
            for (size_t k = 0; k < p->K && n < p->N; k++)
                sum += (uint32_t)(p->A[m * p->K + k] * p->B[k * p->N + n]);
            if ((uint32_t)p->C[m * (p->N + PAD) + n] != sum)
                return 0;
        }
    return 1;
}

/* FNV-1a over the words of C, padding included. */
static uint32_t checksum(const struct product *p)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < p->M * (p->N + PAD); i++)
        h = (h ^ (uint32_t)p->C[i]) * 16777619u;
    return h;
}

static int vectors(void)
{
    static const size_t shapes[][3] = {{1, 1, 1}, {1, 4, 16}, {1, 67, 50}, {2, 3, 5}, {3, 64, 31}, {5, 129, 33},
        {6, 32, 64}, {7, 1, 17}, {11, 255, 48}, {12, 64, 32}, {13, 66, 65}, {25, 130, 16}, {3, 9000, 20}, {40, 5, 100},
        {2, 300001, 3}, {800, 20, 37}, {4, 0, 9}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (const char *how = "r8"; *how; how++)
            for (int threads = 1; threads <= 3; threads += 2) {
                struct product p = make(shapes[i][0], shapes[i][1], shapes[i][2], *how);
                if (multiply(&p, threads))
                    die("multiply failed");
                printf("%zu %zu %zu %c %d %08x\n", p.M, p.K, p.N, *how, threads, checksum(&p));
                drop(&p);
            }
    return 0;
}

static atomic_int wrong;

static void *racer(void *arg)
{
    size_t id = (size_t)arg;
    for (size_t i = 0; i < 25; i++) {
        struct product p = make(1 + (id * 5 + i) % 29, 300 + i, 40 + 7 * id, 'r');
        if (multiply(&p, 1 + (int)((id + i) % 4)) || !exact(&p))
            atomic_fetch_add(&wrong, 1);
        drop(&p);
    }
    return NULL;
}

static int race(void)
{
    pthread_t t[6];
    for (size_t i = 0; i < 6; i++)
        if (pthread_create(&t[i], NULL, racer, (void *)i))
            die("no thread");
    for (size_t i = 0; i < 6; i++)
        pthread_join(t[i], NULL);
    return atomic_load(&wrong) != 0;
}

static atomic_int stop;

static void *busy(void *unused)
{
    struct product p = make(16, 512, 256, 'r');
    while (!atomic_load(&stop))
        if (multiply(&p, 3) || !exact(&p))
            atomic_fetch_add(&wrong, 1);
    drop(&p);
    return unused;
}

static int forks(void)
{
    pthread_t t[3];
    for (int i = 0; i < 3; i++)
        if (pthread_create(&t[i], NULL, busy, NULL))
            die("no thread");
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child < 0)
            die("fork failed");
        if (!child) {
            alarm(120); /* a deadlock ends the child, which then counts as wrong */
            struct product p = make(9, 200, 100, 'r');
            _exit(multiply(&p, 4) || !exact(&p));
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child)
            die("no child to wait for");
        if (status) {
            fprintf(stderr, "driver: child %d ended with wait status %#x\n", i, (unsigned)status);
            atomic_fetch_add(&wrong, 1);
            break; /* one that hangs is enough */
        }
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    return atomic_load(&wrong) != 0;
}

static void limit_address_space(rlim_t spare)
{
    FILE *f = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    if (!f || fscanf(f, "%lu", &pages) != 1)
        die("cannot read /proc/self/statm");
    fclose(f);
    rlim_t bytes = pages * (rlim_t)sysconf(_SC_PAGESIZE) + spare;
    struct rlimit limit = {bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit))
        die("setrlimit failed");
}

static int tight(void)
{
    struct product small = make(9, 2000, 100, 'r'), large = make(768, 8192, 8, 'r');
    mock_gemm_b *b = mock_gemm_s8_pack(large.B, large.K, large.N);
    limit_address_space(2 << 20); /* less than a thread's stack, less than the packed A of the large product */
    int no_worker = multiply(&small, 4);
    int no_memory = mock_gemm_s8(large.A, large.K, b, large.C, large.N + PAD, large.M, 1);
    struct rlimit open_again = {RLIM_INFINITY, RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &open_again))
        die("setrlimit failed");
    int right = exact(&small), untouched = large.C[0] == SENTINEL;
    int again = mock_gemm_s8(large.A, large.K, b, large.C, large.N + PAD, large.M, 2);
    printf("no worker: %d, exact %d; no memory: %d, untouched %d; again: %d, exact %d\n", no_worker, right, no_memory,
           untouched, again, exact(&large));
    mock_gemm_s8_free(b);
    drop(&small);
    drop(&large);
    return 0;
}

static int reload(const char *library)
{
    struct product p = make(20, 300, 100, 'r');
    for (int i = 0; i < 50; i++) {
        void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
        if (!lib)
            die(dlerror());
        mock_gemm_b *(*pack)(const int8_t *, size_t, size_t) = dlsym(lib, "mock_gemm_s8_pack");
        int (*gemm)(const int8_t *, size_t, const mock_gemm_b *, int32_t *, size_t, size_t, int) =
            dlsym(lib, "mock_gemm_s8");
        void (*release)(mock_gemm_b *) = dlsym(lib, "mock_gemm_s8_free");
        if (!pack || !gemm || !release)
            die("a function is missing");
        mock_gemm_b *b = pack(p.B, p.K, p.N);
        if (!b || gemm(p.A, p.K, b, p.C, p.N + PAD, p.M, 3) || !exact(&p))
            die("wrong product");
        release(b);
        dlclose(lib);
        if (dlopen(library, RTLD_NOW | RTLD_NOLOAD))
            die("the library stayed loaded");
    }
    drop(&p);
    return 0;
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "path")) {
        const char *path = mock_gemm_s8_path(), *error = mock_gemm_s8_error();
        printf("%s%s\n", path ? path : "error: ", path ? "" : error);
        return 0;
    }
    if (!strcmp(mode, "vectors")) {
        if (argc > 2 && mock_gemm_s8_force(argv[2]))
            die("this CPU lacks that path");
        return vectors();
    }
    if (!strcmp(mode, "race"))
        return race();
    if (!strcmp(mode, "fork"))
        return forks();
    if (!strcmp(mode, "tight"))
        return tight();
    if (!strcmp(mode, "reload") && argc > 2)
        return reload(argv[2]);
    die("usage: driver path | vectors [PATH] | race | fork | tight | reload LIBRARY");
}
