/* SPDX-License-Identifier: Apache-2.0
 *
 * Where the elements of A, B and C stand, and moving them between a client's bytes and row-major arrays.
 */
#ifndef MOCK_LAYOUT_H
#define MOCK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "persona.h"

/* Everything that fixes the bytes of one operand set. */
typedef struct {
  const mock_type *type;
  mock_tile tile;
  bool a_native, b_native, b_transposed;
  int k_segment; /* native B is tiled in segments of this K; 0 = in one */
} mock_layout;

/* Fills names, dims, sizes and types for one shape. 0, or -1 when a size does not fit the 32-bit field. */
int mock_layout_describe(const mock_layout *layout, const rknn_matmul_shape *shape, rknn_matmul_io_attr *attr);

/* How the elements of an integer or fp16 operand are read. */
typedef struct {
  bool high_nibble_first; /* fault nibble-order */
  bool positive_half;     /* fault int4-positive-half */
} mock_reading;

/* Row-major A [M,K] or B [K,N] from the client's bytes: int8 for int4 and int8 operands, float for all. `out` has
 * room for the elements. 0, or -1 when out of memory. */
int mock_gather_a8(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *raw, int8_t *out,
                   mock_reading how);
int mock_gather_af(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *raw, float *out,
                   mock_reading how);
int mock_gather_b8(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *raw, int8_t *out,
                   mock_reading how);
int mock_gather_bf(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *raw, float *out,
                   mock_reading how);

/* Row-major C of the type's own elements into the client's bytes. */
int mock_scatter_c(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *plain,
                   unsigned char *out);

/* Row-major B [K,N], one element per `element` bytes, into native order; with element 0 the input holds one int4 per
 * byte and the output two. */
int mock_tile_b(int K, int N, int n, int k, int k_segment, unsigned element, const unsigned char *in,
                unsigned char *out);

float mock_half_to_float(uint16_t half);
uint16_t mock_float_to_half(float value);     /* round to nearest, ties to even */
uint16_t mock_float_to_bfloat16(float value); /* the same */

#endif
