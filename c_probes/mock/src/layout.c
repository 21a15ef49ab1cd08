/* SPDX-License-Identifier: Apache-2.0
 *
 * Layout arithmetic. In every layout the place of element (row, column) is the sum of a part that depends on the row
 * and one that depends on the column (for native B above the segment limit: within one segment), so each move is two
 * tables of offsets and one double loop.
 *
 * Source of the layouts: user guide 2.3.0 table 3-5; K segments: comments of the 2.3.2 header.
 */
#include "layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static size_t up(size_t value, size_t step) { return (value + step - 1) / step * step; }

static size_t bytes_of(size_t elements, rknn_tensor_type type) { return (elements * mock_bits_of(type) + 7) / 8; }

static int describe(rknn_matmul_tensor_attr *attr, const char *name, rknn_tensor_type type, uint32_t n_dims,
                    const size_t dims[4]) {
  memset(attr, 0, sizeof *attr);
  snprintf(attr->name, sizeof attr->name, "%s", name);
  attr->type = type;
  attr->n_dims = n_dims;
  double elements = 1;
  size_t product = 1;
  for (uint32_t i = 0; i < n_dims; i++) {
    attr->dims[i] = (uint32_t)dims[i];
    elements *= (double)dims[i];
    product *= dims[i];
  }
  /* The field has 32 bits; and arrays of 4-byte elements are made of every operand, which must fit size_t too. */
  if (elements * mock_bits_of(type) / 8 > UINT32_MAX - 4096.0 || elements * 8 > (double)SIZE_MAX) return -1;
  attr->size = (uint32_t)bytes_of(product, type);
  return 0;
}

int mock_layout_describe(const mock_layout *layout, const rknn_matmul_shape *shape, rknn_matmul_io_attr *attr) {
  const mock_type *type = layout->type;
  const mock_tile *tile = &layout->tile;
  size_t M = (size_t)shape->M, K = (size_t)shape->K, N = (size_t)shape->N;
  size_t ac = (size_t)tile->a_cell, bn = (size_t)tile->b_n, bk = (size_t)tile->b_k, cc = (size_t)mock_c_cell(type->c);
  const size_t a[2][4] = {{M, K}, {up(K, ac) / ac, M, ac}};
  const size_t b[2][4] = {{K, N}, {up(N, bn) / bn, up(K, bk) / bk, bn, bk}};
  const size_t b_transposed[4] = {N, K};
  const size_t c[2][4] = {{M, N}, {up(N, cc) / cc, M, cc}};
  int code = describe(&attr->A, "A", type->a, layout->a_native ? 3 : 2, a[layout->a_native]);
  code |= describe(&attr->B, "B", type->b, layout->b_native ? 4 : 2,
                   layout->b_transposed ? b_transposed : b[layout->b_native]);
  code |= describe(&attr->C, "C", type->c, layout->a_native ? 3 : 2, c[layout->a_native]);
  return code;
}

/* Offsets, in elements, of `count` indices: i -> i / cell * block + i % cell * step. */
static void offsets(size_t *out, size_t count, size_t cell, size_t block, size_t step) {
  for (size_t i = 0; i < count; i++) out[i] = i / cell * block + i % cell * step;
}

/* One rectangle of elements: element (r, c) of the row-major side stands at row[r] + column[c] of the other side. */
typedef struct {
  size_t rows, columns, row_pitch; /* row_pitch: columns of the whole row-major array */
  const size_t *row, *column;
} rectangle;

static int nibble(const unsigned char *raw, size_t at, bool high_first) {
  unsigned value = (at & 1) != high_first ? raw[at / 2] >> 4 : raw[at / 2] & 15u;
  return value >= 8 ? (int)value - 16 : (int)value;
}

static void read_rectangle(const rectangle *r, const unsigned char *raw, rknn_tensor_type type, int8_t *out8,
                           float *outf, mock_reading how) {
  for (size_t i = 0; i < r->rows; i++)
    for (size_t j = 0; j < r->columns; j++) {
      size_t from = r->row[i] + r->column[j], to = i * r->row_pitch + j;
      if (type == RKNN_TENSOR_FLOAT16) {
        uint16_t half;
        memcpy(&half, raw + 2 * from, sizeof half);
        outf[to] = mock_half_to_float(half);
        continue;
      }
      int value = type == RKNN_TENSOR_INT4 ? nibble(raw, from, how.high_nibble_first) : (int8_t)raw[from];
      bool halved = how.positive_half && type == RKNN_TENSOR_INT4 && value > 0;
      if (out8)
        out8[to] = (int8_t)(halved ? value / 2 : value);
      else
        outf[to] = halved ? (float)value / 2 : (float)value;
    }
}

static int gather_a(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *raw, int8_t *out8,
                    float *outf, mock_reading how) {
  size_t M = (size_t)shape->M, K = (size_t)shape->K, cell = (size_t)layout->tile.a_cell;
  size_t *row = malloc((M + K) * sizeof *row), *column = row + M;
  if (!row) return -1;
  offsets(row, M, 1, layout->a_native ? cell : K, 0);
  offsets(column, K, layout->a_native ? cell : K, M * cell, 1);
  read_rectangle(&(rectangle){M, K, K, row, column}, raw, layout->type->a, out8, outf, how);
  free(row);
  return 0;
}

/* Calls `move` for every K segment of native B with its rectangle, the first row and the element at which it begins.
 */
typedef void (*segment_move)(void *state, const rectangle *r, size_t first_row, size_t base);
static int each_b_segment(size_t K, size_t N, size_t n, size_t k, size_t segment, segment_move move, void *state) {
  size_t *row = malloc((K + N) * sizeof *row), *column = row + K;
  if (!row) return -1;
  if (segment == 0 || K <= segment) segment = K;
  for (size_t first = 0, base = 0; first < K; first += segment) {
    size_t rows = K - first < segment ? K - first : segment, padded = up(rows, k);
    offsets(row, rows, k, n * k, 1);
    offsets(column, N, n, padded * n, k);
    move(state, &(rectangle){rows, N, N, row, column}, first, base);
    base += padded * up(N, n);
  }
  free(row);
  return 0;
}

typedef struct {
  const unsigned char *raw;
  rknn_tensor_type type;
  int8_t *out8;
  float *outf;
  size_t N;
  mock_reading how;
} b_read;

static void read_segment(void *state, const rectangle *r, size_t first_row, size_t base) {
  b_read *s = state;
  /* Segments hold whole tiles, so base is even and lies on a byte for int4 too. */
  const unsigned char *raw = s->raw + base * mock_bits_of(s->type) / 8;
  read_rectangle(r, raw, s->type, s->out8 ? s->out8 + first_row * s->N : NULL,
                 s->outf ? s->outf + first_row * s->N : NULL, s->how);
}

static int gather_b(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *raw, int8_t *out8,
                    float *outf, mock_reading how) {
  size_t K = (size_t)shape->K, N = (size_t)shape->N;
  b_read state = {raw, layout->type->b, out8, outf, N, how};
  if (layout->b_native)
    return each_b_segment(K, N, (size_t)layout->tile.b_n, (size_t)layout->tile.b_k, (size_t)layout->k_segment,
                          read_segment, &state);
  size_t *row = malloc((K + N) * sizeof *row), *column = row + K;
  if (!row) return -1;
  offsets(row, K, 1, layout->b_transposed ? 1 : N, 0);
  offsets(column, N, 1, layout->b_transposed ? K : 1, 0);
  read_rectangle(&(rectangle){K, N, N, row, column}, raw, layout->type->b, out8, outf, how);
  free(row);
  return 0;
}

int mock_gather_a8(const mock_layout *l, const rknn_matmul_shape *s, const unsigned char *raw, int8_t *out,
                   mock_reading h) {
  return gather_a(l, s, raw, out, NULL, h);
}
int mock_gather_af(const mock_layout *l, const rknn_matmul_shape *s, const unsigned char *raw, float *out,
                   mock_reading h) {
  return gather_a(l, s, raw, NULL, out, h);
}
int mock_gather_b8(const mock_layout *l, const rknn_matmul_shape *s, const unsigned char *raw, int8_t *out,
                   mock_reading h) {
  return gather_b(l, s, raw, out, NULL, h);
}
int mock_gather_bf(const mock_layout *l, const rknn_matmul_shape *s, const unsigned char *raw, float *out,
                   mock_reading h) {
  return gather_b(l, s, raw, NULL, out, h);
}

int mock_scatter_c(const mock_layout *layout, const rknn_matmul_shape *shape, const unsigned char *plain,
                   unsigned char *out) {
  size_t M = (size_t)shape->M, N = (size_t)shape->N, cell = (size_t)mock_c_cell(layout->type->c);
  size_t width = mock_bits_of(layout->type->c) / 8;
  if (!layout->a_native) {
    memcpy(out, plain, M * N * width);
    return 0;
  }
  if (N % cell) memset(out, 0, up(N, cell) * M * width);
  for (size_t block = 0; block < M; block += 32) /* so that both sides stay in the cache */
    for (size_t n = 0; n < N; n += cell)
      for (size_t m = block; m < M && m < block + 32; m++)
        memcpy(out + ((n / cell * M + m) * cell) * width, plain + (m * N + n) * width,
               (N - n < cell ? N - n : cell) * width);
  return 0;
}

typedef struct {
  const unsigned char *in;
  unsigned char *out;
  size_t N;
  unsigned element;
} b_write;

static void write_segment(void *state, const rectangle *r, size_t first_row, size_t base) {
  b_write *s = state;
  for (size_t i = 0; i < r->rows; i++)
    for (size_t j = 0; j < r->columns; j++) {
      size_t from = (first_row + i) * s->N + j, to = base + r->row[i] + r->column[j];
      if (s->element)
        memcpy(s->out + to * s->element, s->in + from * s->element, s->element);
      else
        s->out[to / 2] |= (unsigned char)((s->in[from] & 15u) << (to & 1 ? 4 : 0));
    }
}

int mock_tile_b(int K, int N, int n, int k, int k_segment, unsigned element, const unsigned char *in,
                unsigned char *out) {
  size_t padded = up((size_t)K, (size_t)k) * up((size_t)N, (size_t)n);
  memset(out, 0, element ? padded * element : padded / 2);
  b_write state = {in, out, (size_t)N, element};
  return each_b_segment((size_t)K, (size_t)N, (size_t)n, (size_t)k, (size_t)k_segment, write_segment, &state);
}
