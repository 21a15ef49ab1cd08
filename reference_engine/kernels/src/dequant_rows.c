/* SPDX-License-Identifier: Apache-2.0
 *
 * Which dequantiser a type has, and whole rows by number.
 */
#include "dequant_types.h"
#include "dequant.h"
#include "levels.h"
#include "pool.h"

EK_TABLE(ek_dequant_part, ek_dequant_legacy)
EK_TABLE(ek_dequant_part, ek_dequant_k)

enum { ROWS_PER_TASK = 16 };

int ek_dequant_known(int type)
{
    switch (type) {
    case EK_F32: case EK_F16: case EK_BF16: case EK_Q4_0: case EK_Q4_1: case EK_Q5_0: case EK_Q5_1: case EK_Q8_0:
    case EK_IQ4_NL: case EK_IQ4_XS: case EK_MXFP4: case EK_Q2_K: case EK_Q3_K: case EK_Q4_K: case EK_Q5_K: case EK_Q6_K:
        return 1;
    }
    return 0;
}

void ek_dequant_row(int type, const uint8_t *row, float *out, size_t k)
{
    if (type >= EK_Q2_K && type <= EK_Q6_K)
        EK_CALL(ek_dequant_k)(type, row, out, k);
    else
        EK_CALL(ek_dequant_legacy)(type, row, out, k);
}

struct rows {
    int type;
    const uint8_t *data;
    int64_t row_bytes, count, k;
    const int64_t *ids;
    float *out;
};

static void some_rows(void *context, size_t index)
{
    const struct rows *x = context;
    int64_t first = (int64_t)index * ROWS_PER_TASK, last = first + ROWS_PER_TASK;
    for (int64_t i = first; i < last && i < x->count; i++)
        ek_dequant_row(x->type, x->data + x->ids[i] * x->row_bytes, x->out + i * x->k, (size_t)x->k);
}

void ek_dequant_rows(int type, const uint8_t *data, int64_t row_bytes, const int64_t *ids, int64_t count, int64_t k,
                     float *out, int threads)
{
    struct rows x = {type, data, row_bytes, count, k, ids, out};
    ek_parallel(some_rows, &x, (size_t)(count + ROWS_PER_TASK - 1) / ROWS_PER_TASK, threads);
}
