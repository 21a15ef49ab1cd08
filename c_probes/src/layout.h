/* SPDX-License-Identifier: Apache-2.0
 *
 * Between logical row-major matrices and the buffers of the matmul API, by the dims that io_attr gives.
 *   norm:   A [M, K]       B [K, N]              C [M, N]
 *   native: A [K/c, M, c]  B [N/n, K/k, n, k]    C [N/c, M, c]
 * Division rounds up and the rest is zero (RKNN SDK user guide 2.3.0, table 3-5). Two int4 values share a byte, the
 * even element in the low nibble (runtime 2.x, bit-exact community test on RK3588). */
#ifndef RKNPU_KIT_LAYOUT_H
#define RKNPU_KIT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rknn_abi.h"

enum operand { OPERAND_A, OPERAND_B, OPERAND_C };

/* Whether dims, size and type of attr can hold a rows x cols operand in that layout (B: rows = K, cols = N). When not,
 * `why` gets one clause. Nothing below may be called on an attr that failed this. */
bool layout_check(const rknn_matmul_tensor_attr *attr, enum operand operand, int layout, int rows, int cols, char *why,
                  size_t why_size);

/* Elements of the buffer, padding included. */
size_t layout_elements(const rknn_matmul_tensor_attr *attr);

/* From row-major int8 values to the order of the buffer, still one value per byte. `out` holds layout_elements(). */
void layout_order_A(int8_t *out, const rknn_matmul_tensor_attr *attr, const int8_t *A, int M, int K);
/* K_segment > 0: K is cut in segments of so many rows, each tiled on its own, one after the other (header note of
 * 2.3.2 about native B). Zeros where the last segment's padding would not fit dims. */
void layout_order_B(int8_t *out, const rknn_matmul_tensor_attr *attr, const int8_t *B, int K, int N, int K_segment);

/* Values to their stored form: int8 as it is, int4 two to a byte, float16 and bfloat16 by value. False for a type
 * that no input is known to have. `count` is even for int4 in every legal shape; an odd last one gets its own byte. */
bool layout_encode(void *out, int type, const int8_t *values, size_t count);

/* Where element (row, col) of C stands, in elements. */
size_t layout_offset_C(const rknn_matmul_tensor_attr *attr, size_t row, size_t col);
/* Element of C at that offset as a number. */
double layout_value_C(const rknn_matmul_tensor_attr *attr, const void *C, size_t offset);

/* One row of C as integers. Elements that are no integer of 32 bits (fractions, NaN, infinities) are counted, and read
 * as 0. Returns that count. */
size_t layout_row_C(const rknn_matmul_tensor_attr *attr, const void *C, size_t row, int32_t *out, size_t N);

/* The sentinel: an alternating pattern of bytes that C is filled with before a run. */
void sentinel_fill(void *buffer, size_t bytes);
bool sentinel_at(const void *buffer, size_t offset_bytes, size_t bytes);

#endif
