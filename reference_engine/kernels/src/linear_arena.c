/* SPDX-License-Identifier: Apache-2.0
 *
 * Memory of the weights of one model: chunks of huge pages, handed out from the front and given back together. A small
 * weight on pages of its own is read at half the speed, because the CPU's prefetcher stops at every 4 KiB.
 */
#include "linear_weight.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CACHE_LINE = 64, HUGE_PAGE = 2 << 20 };

/* Under the address sanitizer every piece is a chunk of its own, so that a step beyond its end is seen. */
#if defined(__SANITIZE_ADDRESS__)
enum { APART = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { APART = 1 };
#else
enum { APART = 0 };
#endif
#else
enum { APART = 0 };
#endif

struct chunk {
    struct chunk *next;
    uint8_t *base, *mapped; /* mapped NULL: base is of posix_memalign */
    size_t size, used, mapped_size;
};

struct ek_arena {
    pthread_mutex_t lock;
    atomic_int holders;
    size_t chunk;
    struct chunk *chunks; /* newest first; only the first has room */
};

ek_arena *ek_arena_new(int64_t chunk)
{
    ek_arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        return NULL;
    pthread_mutex_init(&arena->lock, NULL);
    arena->holders = 1;
    arena->chunk = APART ? 0 : (size_t)chunk;
    return arena;
}

ek_arena *ek_arena_hold(ek_arena *arena)
{
    atomic_fetch_add(&arena->holders, 1);
    return arena;
}

void ek_arena_free(ek_arena *arena)
{
    if (!arena || atomic_fetch_sub(&arena->holders, 1) != 1)
        return;
    for (struct chunk *c = arena->chunks, *next; c; c = next) {
        next = c->next;
        if (c->mapped)
            munmap(c->mapped, c->mapped_size);
        else
            free(c->base);
        free(c);
    }
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

/* Zeroed memory of `size` bytes, on huge pages where that pays. */
static struct chunk *new_chunk(size_t size)
{
    struct chunk *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->size = size;
    if (size < HUGE_PAGE || APART) {
        void *p = NULL;
        if (!posix_memalign(&p, CACHE_LINE, size))
            c->base = memset(p, 0, size);
    } else {
        c->mapped_size = size + HUGE_PAGE;
        void *p = mmap(NULL, c->mapped_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) {
            c->mapped = p;
            c->base = (uint8_t *)(((uintptr_t)p + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
#ifdef MADV_HUGEPAGE
            (void)madvise(c->base, size, MADV_HUGEPAGE); /* only a wish */
#endif
        }
    }
    if (c->base)
        return c;
    free(c);
    return NULL;
}

void *ek_arena_take(ek_arena *arena, size_t bytes)
{
    bytes = (bytes + CACHE_LINE) / CACHE_LINE * CACHE_LINE; /* at least one line */
    pthread_mutex_lock(&arena->lock);
    struct chunk *c = arena->chunks;
    if (!c || c->size - c->used < bytes) {
        struct chunk *fresh = new_chunk(bytes > arena->chunk / 2 ? bytes : arena->chunk);
        if (fresh && c && fresh->size == bytes) { /* behind the one that still has room */
            fresh->next = c->next;
            c->next = fresh;
        } else if (fresh) {
            fresh->next = c;
            arena->chunks = fresh;
        }
        c = fresh;
    }
    void *p = c ? c->base + c->used : NULL;
    if (c)
        c->used += bytes;
    pthread_mutex_unlock(&arena->lock);
    return p;
}
