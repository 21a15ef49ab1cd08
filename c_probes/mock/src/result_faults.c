/* SPDX-License-Identifier: Apache-2.0
 *
 * Faults that change results: some change what is computed, the others spoil the finished, row-major C.
 */
#include "result_faults.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api.h"
#include "faults.h"
#include "settings.h"

static bool applies(const mock_context *context, mock_fault_id id) {
  return mock_fault_applies(id, context->type->code, context->runs);
}

mock_variant mock_variant_of(const mock_context *context) {
  mock_variant variant = {{applies(context, FAULT_NIBBLE_ORDER), applies(context, FAULT_INT4_POSITIVE_HALF)},
                          0,
                          applies(context, FAULT_STALE_A),
                          applies(context, FAULT_STALE_B),
                          applies(context, FAULT_F16_ACCUMULATE),
                          applies(context, FAULT_WRAP)};
  if (applies(context, FAULT_K_TAIL_DROPPED))
    variant.k_dropped = (int)fmax(0, mock_fault(FAULT_K_TAIL_DROPPED)->value[2]);
  return variant;
}

static bool zeroed(const mock_context *context) {
  const rknn_matmul_shape *s = &context->shapes[context->current];
  if (applies(context, FAULT_C_ZERO)) return true;
  if (applies(context, FAULT_PER_CHANNEL_ZERO) && context->b_quant == RKNN_QUANT_TYPE_PER_CHANNEL_SYM) return true;
  if (applies(context, FAULT_PER_GROUP_ZERO) && context->b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM) return true;
  return applies(context, FAULT_SMALL_F16_ZERO) && context->type->a == RKNN_TENSOR_FLOAT16 &&
         (double)s->M * s->K * s->N <= mock_fault(FAULT_SMALL_F16_ZERO)->value[2];
}

bool mock_result_faults_on(const mock_context *context) {
  static const mock_fault_id spoilers[] = {FAULT_C_UNTOUCHED,  FAULT_STALE_C,    FAULT_SLICE0_ONLY,
                                           FAULT_ROWS_SWAPPED, FAULT_OFF_BY_ONE, FAULT_NAN};
  for (size_t i = 0; i < sizeof spoilers / sizeof *spoilers; i++)
    if (applies(context, spoilers[i])) return true;
  return zeroed(context);
}

/* Parameter i of a fault as an index below `count`; negative counts from the end. */
static size_t place(const mock_fault_state *fault, int i, size_t count) {
  double value = fault->value[i] < 0 ? (double)count + fault->value[i] : fault->value[i];
  return value < 0 ? 0 : value >= (double)count ? count - 1 : (size_t)value;
}

static void add_one(rknn_tensor_type type, unsigned char *at) {
  uint16_t half;
  uint32_t whole;
  float real;
  switch (type) {
    case RKNN_TENSOR_INT8: *at = (unsigned char)(*at + 1u); break;
    case RKNN_TENSOR_INT32:
      memcpy(&whole, at, 4);
      whole++;
      memcpy(at, &whole, 4);
      break;
    case RKNN_TENSOR_FLOAT32:
      memcpy(&real, at, 4);
      real = real + 1 > real ? real + 1 : nextafterf(real, INFINITY);
      memcpy(at, &real, 4);
      break;
    case RKNN_TENSOR_INT16:
      memcpy(&half, at, 2);
      half++;
      memcpy(at, &half, 2);
      break;
    default:
      memcpy(&half, at, 2);
      if (type == RKNN_TENSOR_FLOAT16 && mock_float_to_half(mock_half_to_float(half) + 1) != half)
        half = mock_float_to_half(mock_half_to_float(half) + 1);
      else
        half = (uint16_t)(half & 0x8000u ? half - 1 : half + 1); /* next value up */
      memcpy(at, &half, 2);
  }
}

static void set_extreme(rknn_tensor_type type, unsigned char *at) {
  unsigned char two[16];
  mock_fill_unusable(type, two, 2);
  memcpy(at, two, mock_bits_of(type) / 8);
}

static void spoil_rows(const mock_context *context, unsigned char *plain, size_t M, size_t row_bytes) {
  const mock_fault_state *fault = mock_fault(FAULT_ROWS_SWAPPED);
  if (!applies(context, FAULT_ROWS_SWAPPED) || M < 2) return;
  unsigned char *one = plain + place(fault, 2, M - 1) * row_bytes, *other = one + row_bytes;
  for (size_t i = 0; i < row_bytes; i++) {
    unsigned char kept = one[i];
    one[i] = other[i];
    other[i] = kept;
  }
}

/* The client's C as it stands, row-major only in normal layout; enough for slices and stale results to look
 * untouched. */
static bool restore_rows(mock_context *context, unsigned char *plain, size_t from_row) {
  size_t available = 0;
  const rknn_matmul_shape *shape = &context->shapes[context->current];
  size_t width = mock_bits_of(context->type->c) / 8, M = (size_t)shape->M, N = (size_t)shape->N;
  size_t cell = (size_t)mock_c_cell(context->type->c), needed = context->attrs[context->current].C.size;
  const unsigned char *now = mock_memory_bytes(context->operand[MOCK_C].memory, &available);
  if (!now || available < needed) return false;
  for (size_t m = from_row; m < M; m++)
    for (size_t n = 0; n < N; n++) {
      size_t at = context->a_native ? (n / cell * M + m) * cell + n % cell : m * N + n;
      memcpy(plain + (m * N + n) * width, now + at * width, width);
    }
  return true;
}

bool mock_spoil(mock_context *context, unsigned char *plain) {
  const rknn_matmul_shape *shape = &context->shapes[context->current];
  const mock_fault_state *fault;
  rknn_tensor_type type = context->type->c;
  size_t M = (size_t)shape->M, N = (size_t)shape->N, width = mock_bits_of(type) / 8;
  if (applies(context, FAULT_C_UNTOUCHED)) return false;
  if (applies(context, FAULT_STALE_C) && context->runs % 2 == 0) return false;
  if (zeroed(context)) memset(plain, 0, M * N * width);
  spoil_rows(context, plain, M, N * width);
  if (applies(context, FAULT_SLICE0_ONLY)) {
    double slices = fmax(1, mock_fault(FAULT_SLICE0_ONLY)->value[2]);
    restore_rows(context, plain, (size_t)ceil((double)M / slices));
  }
  if (applies(context, FAULT_OFF_BY_ONE)) {
    fault = mock_fault(FAULT_OFF_BY_ONE);
    add_one(type, plain + (place(fault, 2, M) * N + place(fault, 3, N)) * width);
  }
  if (applies(context, FAULT_NAN)) {
    fault = mock_fault(FAULT_NAN);
    set_extreme(type, plain + (place(fault, 2, M) * N + place(fault, 3, N)) * width);
  }
  return true;
}

void mock_write_past(const mock_context *context, unsigned char *end) {
  if (!applies(context, FAULT_OOB_WRITE)) return;
  /* Volatile: the point is the store itself. */
  for (volatile unsigned char *at = end; at < end + (size_t)fmax(0, mock_fault(FAULT_OOB_WRITE)->value[2]); at++)
    *at = 0xee;
}

int mock_submit_fails(const mock_context *context) {
  const mock_fault_state *fault = mock_fault(FAULT_SUBMIT_FAILED);
  double run = (double)context->runs;
  if (!fault || run < fault->value[0] || (run > fault->value[0] && fault->value[1] == 0)) return 0;
  mock_log(
      'E',
      "failed to submit, op id: 1, op name: MatMul:MatMul, flags: 0x5, task start: 0, task number: 192, run task "
      "counter: 0, int status: %#x, please try updating to the latest version of the toolkit2 and runtime",
      (unsigned)fault->value[2]);
  return RKNN_ERR_FAIL;
}

void mock_leak_memory(void) {
  const mock_fault_state *fault = mock_fault(FAULT_MEMORY_LEAK);
  if (!fault || fault->value[0] < 1) return;
  size_t size = (size_t)fault->value[0];
  volatile unsigned char *lost = malloc(size);
  for (size_t i = 0; lost && i < size; i += 512) lost[i] = 1; /* touched, so that it counts as resident */
}
