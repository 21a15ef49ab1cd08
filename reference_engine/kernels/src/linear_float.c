/* SPDX-License-Identifier: Apache-2.0
 *
 * float32 products with weights left as the file has them: a few rows at a time are dequantised into L2 and used by
 * all rows of x.
 */
#include "dequant.h"
#include "dequant_types.h"
#include "levels.h"
#include "linear.h"
#include "linear_rows.h"
#include "linear_tile.h"
#include "pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

EK_TABLE(ek_row_amax, ek_row_amax)
EK_TABLE(ek_tile_dot, ek_tile_dot)

enum { LANES = 16, BLOCK_BYTES = 256 << 10, LEAST_ROWS = 4, MOST_ROWS = 64, X_BYTES = 256 << 10, INFINITE = 0x7f800000 };

struct product {
    int type;
    const uint8_t *rows;
    int64_t row_bytes, n, k, M, block, lanes; /* block: rows of w per task; lanes: k rounded up */
    const float *x; /* rows of `lanes` */
    float *out;
    atomic_llong bad;
    atomic_int no_memory;
};

static int64_t round_up(int64_t k)
{
    return (k + LANES - 1) / LANES * LANES;
}

static void some_columns(void *context, size_t index)
{
    struct product *p = context;
    int64_t n0 = (int64_t)index * p->block, count = p->n - n0 < p->block ? p->n - n0 : p->block;
    float *w = calloc((size_t)(count * p->lanes), sizeof *w);
    if (!w) {
        atomic_store(&p->no_memory, 1);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        float *row = w + i * p->lanes;
        ek_dequant_row(p->type, p->rows + (n0 + i) * p->row_bytes, row, (size_t)p->k);
        if (EK_CALL(ek_row_amax)(row, (size_t)p->k) >= INFINITE) {
            long long bad = n0 + i, seen = atomic_load(&p->bad);
            while (bad < seen && !atomic_compare_exchange_weak(&p->bad, &seen, bad))
                ;
        }
    }
    int64_t step = X_BYTES / (p->lanes * 4) + 4; /* rows of x that stay in L2 beside w */
    for (int64_t m = 0; m < p->M; m += step)
        EK_CALL(ek_tile_dot)(p->x + m * p->lanes, (size_t)p->lanes, (size_t)(p->M - m < step ? p->M - m : step), w,
                             (size_t)p->lanes, (size_t)count, (size_t)p->lanes, p->out + m * p->n + n0, (size_t)p->n);
    free(w);
}

int64_t ek_linear_float(int type, const uint8_t *rows, int64_t row_bytes, int64_t n, int64_t k, const float *x,
                        int64_t M, float *out, int threads)
{
    struct product p = {.type = type, .rows = rows, .row_bytes = row_bytes, .n = n, .k = k, .M = M, .x = x, .out = out,
                        .lanes = round_up(k), .bad = INT64_MAX};
    float *padded = NULL;
    if (p.lanes != k) {
        padded = calloc((size_t)(M * p.lanes) + 1, sizeof *padded);
        if (!padded)
            return -2;
        for (int64_t m = 0; m < M; m++)
            memcpy(padded + m * p.lanes, x + m * k, (size_t)k * sizeof *padded);
        p.x = padded;
    }
    p.block = BLOCK_BYTES / (p.lanes * 4 + 1) / LEAST_ROWS * LEAST_ROWS;
    p.block = p.block < LEAST_ROWS ? LEAST_ROWS : p.block > MOST_ROWS ? MOST_ROWS : p.block;
    if (M)
        ek_parallel(some_columns, &p, (size_t)((n + p.block - 1) / p.block), threads);
    free(padded);
    return p.no_memory ? -2 : p.bad == INT64_MAX ? -1 : p.bad;
}
