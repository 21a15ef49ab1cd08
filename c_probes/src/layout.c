/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "half.h"
#include "names.h"

bool layout_check(const rknn_matmul_tensor_attr *attr, enum operand operand, int layout, int rows, int cols, char *why,
                  size_t why_size) {
  const uint32_t *d = attr->dims;
  const uint32_t n_dims = layout == RKNN_MM_LAYOUT_NORM ? 2 : operand == OPERAND_B ? 4 : 3;
  const uint64_t R = (uint64_t)rows, S = (uint64_t)cols;
  if (attr->n_dims != n_dims) {
    snprintf(why, why_size, "io_attr.%c has %" PRIu32 " dims where its %s layout has %" PRIu32, "ABC"[operand],
             attr->n_dims, layout_name(layout), n_dims);
    return false;
  }
  bool fits = false;
  if (n_dims == 2) fits = d[0] == R && d[1] == S;
  if (n_dims == 3) fits = d[2] > 0 && d[1] == R && d[0] == (S + d[2] - 1) / d[2];
  if (n_dims == 4)
    fits = d[2] > 0 && d[3] > 0 && d[0] == (S + d[2] - 1) / d[2] && (uint64_t)d[1] * d[3] >= R && d[1] <= R;
  if (!fits) {
    int at = snprintf(why, why_size, "io_attr.%c has dims", "ABC"[operand]);
    for (uint32_t i = 0; i < n_dims && at > 0 && (size_t)at < why_size; i++)
      at += snprintf(why + at, why_size - (size_t)at, "%c%" PRIu32, i ? 'x' : ' ', d[i]);
    if (at > 0 && (size_t)at < why_size)
      snprintf(why + at, why_size - (size_t)at, ", which do not describe a %dx%d matrix in %s layout", rows, cols,
               layout_name(layout));
    return false;
  }
  const unsigned bits = tensor_type_bits((int)attr->type);
  if (bits == 0) {
    snprintf(why, why_size, "io_attr.%c has tensor type %d, which these probes do not know", "ABC"[operand],
             (int)attr->type);
    return false;
  }
  const uint64_t need = ((uint64_t)layout_elements(attr) * bits + 7) / 8;
  if (attr->size < need) {
    snprintf(why, why_size, "io_attr.%c has size %" PRIu32 " where its dims need %" PRIu64 " bytes", "ABC"[operand],
             attr->size, need);
    return false;
  }
  return true;
}

size_t layout_elements(const rknn_matmul_tensor_attr *attr) {
  size_t count = 1;
  for (uint32_t i = 0; i < attr->n_dims && i < RKNN_MAX_DIMS; i++) count *= attr->dims[i];
  return count;
}

void layout_order_A(int8_t *out, const rknn_matmul_tensor_attr *attr, const int8_t *A, int M, int K) {
  const size_t rows = (size_t)M, cols = (size_t)K;
  if (attr->n_dims == 2) {
    memcpy(out, A, rows * cols);
    return;
  }
  const size_t c = attr->dims[2];
  for (size_t block = 0; block * c < cols; block++) {
    const size_t here = cols - block * c < c ? cols - block * c : c;
    for (size_t m = 0; m < rows; m++) {
      int8_t *cell = out + (block * rows + m) * c;
      memcpy(cell, A + m * cols + block * c, here);
      memset(cell + here, 0, c - here);
    }
  }
}

void layout_order_B(int8_t *out, const rknn_matmul_tensor_attr *attr, const int8_t *B, int K, int N, int K_segment) {
  const size_t rows = (size_t)K, cols = (size_t)N;
  if (attr->n_dims == 2) {
    memcpy(out, B, rows * cols);
    return;
  }
  const size_t n = attr->dims[2], k = attr->dims[3], n_blocks = attr->dims[0];
  const size_t capacity = layout_elements(attr);
  const size_t segment = K_segment > 0 && K_segment < K ? (size_t)K_segment : rows;
  memset(out, 0, capacity);
  size_t base = 0;
  for (size_t start = 0; start < rows; start += segment) {
    const size_t length = rows - start < segment ? rows - start : segment;
    const size_t k_blocks = (length + k - 1) / k;
    if (base + n_blocks * k_blocks * n * k > capacity) return;
    for (size_t row = 0; row < length; row++) {
      const int8_t *from = B + (start + row) * cols;
      int8_t *to = out + base + row / k * n * k + row % k;
      for (size_t col = 0; col < cols; col++) to[col / n * k_blocks * n * k + col % n * k] = from[col];
    }
    base += n_blocks * k_blocks * n * k;
  }
}

bool layout_encode(void *out, int type, const int8_t *values, size_t count) {
  if (type == RKNN_TENSOR_INT8) {
    memcpy(out, values, count);
    return true;
  }
  if (type == RKNN_TENSOR_INT4) {
    uint8_t *bytes = out;
    for (size_t i = 0; i < count; i += 2) {
      const unsigned high = i + 1 < count ? (uint8_t)values[i + 1] : 0;
      bytes[i / 2] = (uint8_t)(((uint8_t)values[i] & 15u) | (high & 15u) << 4);
    }
    return true;
  }
  if (type == RKNN_TENSOR_FLOAT16 || type == RKNN_TENSOR_BFLOAT16) {
    uint16_t table[256], *words = out;
    for (int v = -128; v < 128; v++)
      table[(uint8_t)v] = type == RKNN_TENSOR_FLOAT16 ? half_of_integer(v) : bfloat16_of_integer(v);
    for (size_t i = 0; i < count; i++) words[i] = table[(uint8_t)values[i]];
    return true;
  }
  return false;
}

size_t layout_offset_C(const rknn_matmul_tensor_attr *attr, size_t row, size_t col) {
  if (attr->n_dims == 2) return row * attr->dims[1] + col;
  const size_t M = attr->dims[1], c = attr->dims[2];
  return (col / c * M + row) * c + col % c;
}

double layout_value_C(const rknn_matmul_tensor_attr *attr, const void *C, size_t offset) {
  switch (attr->type) {
    case RKNN_TENSOR_INT8: return ((const int8_t *)C)[offset];
    case RKNN_TENSOR_INT16: return ((const int16_t *)C)[offset];
    case RKNN_TENSOR_INT32: return ((const int32_t *)C)[offset];
    case RKNN_TENSOR_FLOAT32: return (double)((const float *)C)[offset];
    case RKNN_TENSOR_FLOAT16: return (double)float_of_half(((const uint16_t *)C)[offset]);
    case RKNN_TENSOR_BFLOAT16: return (double)float_of_bfloat16(((const uint16_t *)C)[offset]);
    default: return NAN;
  }
}

size_t layout_row_C(const rknn_matmul_tensor_attr *attr, const void *C, size_t row, int32_t *out, size_t N) {
  const bool norm = attr->n_dims == 2;
  const size_t c = norm ? N : attr->dims[2];
  size_t odd = 0;
  for (size_t col = 0; col < N; col += c) {
    const size_t at = layout_offset_C(attr, row, col), here = N - col < c ? N - col : c;
    if (attr->type == RKNN_TENSOR_INT32) {
      memcpy(out + col, (const int32_t *)C + at, here * sizeof *out);
      continue;
    }
    for (size_t i = 0; i < here; i++) {
      const double value = layout_value_C(attr, C, at + i);
      const bool whole = value >= INT32_MIN && value <= INT32_MAX && value == floor(value);
      out[col + i] = whole ? (int32_t)value : 0;
      odd += !whole;
    }
  }
  return odd;
}

/* As 32-bit words 0x5AA5A55A and 0xA55A5AA5: far outside any sum these probes provoke; as float32 2e16 and -2e-16; as
 * float16 212.6 and -0.02; as int16 23205 and -23206. As int8 a value can occur, the alternation over C cannot. */
static const uint8_t sentinel[8] = {0x5a, 0xa5, 0xa5, 0x5a, 0xa5, 0x5a, 0x5a, 0xa5};

void sentinel_fill(void *buffer, size_t bytes) {
  uint8_t *out = buffer;
  size_t done = bytes < sizeof sentinel ? bytes : sizeof sentinel;
  memcpy(out, sentinel, done);
  while (done < bytes) { /* doubling keeps the period, for what is done is a multiple of it */
    const size_t more = bytes - done < done ? bytes - done : done;
    memcpy(out + done, out, more);
    done += more;
  }
}

bool sentinel_at(const void *buffer, size_t offset_bytes, size_t bytes) {
  const uint8_t *at = (const uint8_t *)buffer + offset_bytes;
  for (size_t i = 0; i < bytes; i++)
    if (at[i] != sentinel[(offset_bytes + i) % sizeof sentinel]) return false;
  return true;
}
