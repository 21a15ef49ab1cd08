/* SPDX-License-Identifier: Apache-2.0
 *
 * Blocking and threads: the product cut into tiles.
 *
 * Rows come in blocks whose packed form stays small, K in blocks whose operands stay in cache, columns in chunks
 * that the threads take from a counter. Sums of later K blocks add to C, which is exact modulo 2^32 in any order.
 */
#include "gemm_path.h"
#include "gemm_pool.h"
#include "gemm_s8.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_ROWS = 768,   /* with MAX_QUADS it bounds the packed A to 6 (12) MiB */
    MAX_QUADS = 2048,   /* quads of K packed at once */
    TASKS_PER_THREAD = 16,
};

static const uint32_t zeros[GEMM_PANEL * GEMM_MAX_NR];

/* One row block by one K span, all columns. */
struct span {
    const struct gemm_path *path;
    const mock_gemm_b *B;
    const int8_t *A;
    size_t lda, first_quad, quads, rows;
    uint32_t *C;
    size_t ldc;
    uint8_t *strips;              /* packed A; strip s starts at s * mr * quads * a_bytes */
    size_t chunk, chunks, group;  /* panels per task, tasks across, strips per task */
};

static size_t div_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static unsigned strip_rows(const struct span *x, size_t strip)
{
    return (unsigned)least(x->path->mr, x->rows - strip * x->path->mr);
}

static uint8_t *strip_at(const struct span *x, size_t strip)
{
    return x->strips + strip * x->path->mr * x->quads * gemm_a_bytes(x->path->form);
}

static void pack_strip(void *context, size_t strip)
{
    const struct span *x = context;
    gemm_pack_a(strip_at(x, strip), x->A + strip * x->path->mr * x->lda, x->lda, x->B->K, x->first_quad * GEMM_QUAD,
                x->quads, strip_rows(x, strip), x->path->form);
}

/* One tile; where it sticks out past column N it is made aside and only its real columns are copied. */
static void run_tile(const struct span *x, size_t strip, size_t panel, unsigned np, size_t q0, size_t quads)
{
    const mock_gemm_b *B = x->B;
    const struct gemm_path *path = x->path;
    unsigned m = strip_rows(x, strip);
    const uint8_t *a = strip_at(x, strip) + q0 * m * gemm_a_bytes(path->form);
    const int8_t *b = B->data + (panel * B->quads + x->first_quad + q0) * GEMM_QUAD_BYTES;
    size_t stride = B->quads * GEMM_QUAD_BYTES, n0 = panel * GEMM_PANEL, cols = (size_t)np * GEMM_PANEL;
    uint32_t *c = x->C + strip * path->mr * x->ldc + n0;
    const uint32_t *init = path->form == GEMM_A_U8 ? B->offset_fix + n0 : zeros;
    if (x->first_quad + q0)
        init = NULL;
    if (n0 + cols <= B->N) {
        path->tile(a, b, stride, quads, m, np, c, x->ldc, init);
        return;
    }
    uint32_t side[GEMM_MAX_MR * GEMM_PANEL * GEMM_MAX_NR] = {0};
    size_t real = B->N - n0;
    for (unsigned r = 0; r < m && !init; r++)
        memcpy(side + r * cols, c + r * x->ldc, real * sizeof *c);
    path->tile(a, b, stride, quads, m, np, side, cols, init);
    for (unsigned r = 0; r < m; r++)
        memcpy(c + r * x->ldc, side + r * cols, real * sizeof *c);
}

static void run_chunk(void *context, size_t index)
{
    const struct span *x = context;
    size_t p0 = index % x->chunks * x->chunk, p1 = least(p0 + x->chunk, x->B->panels);
    size_t strips = div_up(x->rows, x->path->mr);
    size_t s0 = index / x->chunks * x->group, s1 = least(s0 + x->group, strips);
    /* One strip reads B once from end to end: keep it one stream. */
    size_t step = strips == 1 ? x->quads : x->path->block_quads, nr = x->path->nr;
    for (size_t q = 0; q < x->quads; q += step)
        for (size_t p = p0; p < p1; p += nr)
            for (size_t s = s0; s < s1; s++)
                run_tile(x, s, p, (unsigned)least(nr, p1 - p), q, least(step, x->quads - q));
}

static void run_span(struct span *x, int threads)
{
    size_t strips = div_up(x->rows, x->path->mr), panels = x->B->panels, nr = x->path->nr;
    size_t wanted = threads > 1 ? (size_t)threads * TASKS_PER_THREAD : 1;
    if (x->rows * x->quads < 16384) /* less than a wake-up */
        for (size_t s = 0; s < strips; s++)
            pack_strip(x, s);
    else
        gemm_pool_run(pack_strip, x, strips, threads);
    x->chunk = div_up(div_up(panels, wanted), nr) * nr;
    x->chunks = div_up(panels, x->chunk);
    x->group = div_up(strips, div_up(wanted, x->chunks));
    gemm_pool_run(run_chunk, x, x->chunks * div_up(strips, x->group), threads);
}

int mock_gemm_s8(const int8_t *A, size_t lda, const mock_gemm_b *B, int32_t *C, size_t ldc, size_t M, int threads)
{
    const struct gemm_path *path = gemm_path_current();
    if (!path)
        return -1;
    if (!M || !B->N)
        return 0;
    if (!B->K) {
        for (size_t m = 0; m < M; m++)
            memset(C + m * ldc, 0, B->N * sizeof *C);
        return 0;
    }
    /* Row blocks of even height: a thin last one would read all of B for a few rows. */
    size_t rows = div_up(div_up(M, div_up(M, BLOCK_ROWS)), path->mr) * path->mr, span = least(B->quads, MAX_QUADS);
    rows = least(rows, M);
    void *strips = NULL;
    if (posix_memalign(&strips, 64, rows * span * gemm_a_bytes(path->form)))
        return -1;
    for (size_t m = 0; m < M; m += rows)
        for (size_t q = 0; q < B->quads; q += span) {
            struct span x = {
                .path = path, .B = B, .A = A + m * lda, .lda = lda, .first_quad = q,
                .quads = least(span, B->quads - q), .rows = least(rows, M - m),
                .C = (uint32_t *)C + m * ldc, .ldc = ldc, .strips = strips,
            };
            run_span(&x, threads);
        }
    free(strips);
    return 0;
}
