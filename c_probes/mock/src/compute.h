/* SPDX-License-Identifier: Apache-2.0
 *
 * One matmul: from the bytes of A and B to row-major C of the type's own elements. Keeps what it prepared, and the
 * last result, as long as the bytes do not change.
 */
#ifndef MOCK_COMPUTE_H
#define MOCK_COMPUTE_H

#include "context.h"
#include "layout.h"

typedef struct mock_prepared mock_prepared;

/* Faults that change what is computed, as they apply to this run. Part of the memo's key. */
typedef struct {
  mock_reading reading;
  int k_dropped; /* products left out at the end of each sum */
  bool stale_a, stale_b, f16_accumulate, wraps;
} mock_variant;

mock_layout mock_context_layout(const mock_context *context);

/* Row-major C of the current shape, owned by the context; NULL when out of memory. */
const unsigned char *mock_compute(mock_context *context, const mock_variant *variant);

/* C that no check takes for right: NaN, or values that no sum of the type reaches. */
void mock_fill_unusable(rknn_tensor_type type, unsigned char *out, size_t elements);

/* Runs that took C from the memo, in this process. */
unsigned long mock_memo_hits(void);

#endif
