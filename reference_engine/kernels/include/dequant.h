/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows of quantised GGUF tensors to float32, the bits of the gguf package. Types by their ggml number.
 */
#ifndef ENGINE_DEQUANT_H
#define ENGINE_DEQUANT_H

#include <stddef.h>
#include <stdint.h>

/* cdef begin */
/* 1 where ek_dequant_rows knows the type. */
int ek_dequant_known(int type);
/* out [count, k]: the rows of those numbers. data: the tensor's first byte; row_bytes: from one row to the next. */
void ek_dequant_rows(int type, const uint8_t *data, int64_t row_bytes, const int64_t *ids, int64_t count, int64_t k,
                     float *out, int threads);
/* cdef end */

/* One row of k elements; the type is known. */
void ek_dequant_row(int type, const uint8_t *row, float *out, size_t k);

#endif
