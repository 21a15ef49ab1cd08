/* SPDX-License-Identifier: Apache-2.0
 *
 * The prepared activation of one call. Private.
 */
#ifndef ENGINE_LINEAR_PREPARE_H
#define ENGINE_LINEAR_PREPARE_H

#include "linear_weight.h"

#include <stdatomic.h>

/* Rows of x as the product reads them, and their scales. */
typedef struct {
    const ek_weight *w;
    const float *x;
    int64_t M;
    int sets;              /* prepared activations, see ek_activations */
    size_t rows;           /* rows that are prepared and packed together */
    enum gemm_a_form form;
    uint8_t *strips;       /* integers: set s starts at offset[s], its row r (first of its strip) at r * bytes of a row */
    float *floats;         /* bits 16: [M][k_op], each value that of a half */
    size_t *offset;
    float *scale;          /* [sets][M] */
    atomic_llong bad;      /* first row that is not finite, INT64_MAX for none */
    atomic_llong rim, clipped;
    atomic_int no_memory;
} ek_prepared;

/* 0, or -1 when out of memory; `rows` as the path's tiles want them. Free with ek_prepared_free in either case. */
int ek_prepared_new(ek_prepared *p, const ek_weight *w, const float *x, int64_t M, size_t rows, enum gemm_a_form form);
void ek_prepared_free(ek_prepared *p);
/* Prepares everything. -1, -2 or a row, as ek_linear_quantized returns them. */
int64_t ek_prepare_all(ek_prepared *p, int threads);
/* Integers and scale of one row and one set; q has room for the K part. Returns the counts. x: the row after the
 * transform; scratch: [k_op]. */
ek_counts ek_prepare_row(const ek_weight *w, int set, const float *x, float *scratch, int8_t *q, float *scale);
/* The row of x as the sets see it: itself, or transformed into work [k_op]. */
const float *ek_transformed(const ek_weight *w, const float *x, float *work);

static inline size_t ek_row_bytes(const ek_prepared *p, int set)
{
    const struct mock_gemm_b *b = p->w->b + set;
    return b->quads * gemm_a_bytes(p->form);
}

#endif
