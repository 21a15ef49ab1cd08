/* SPDX-License-Identifier: Apache-2.0
 *
 * int8 output: round to nearest, ties to even, then saturate (rknn-toolkit2 reports saturation; the tie rule of the
 * chip is not known). int16 output: saturate, or wrap when asked to: reports only say that it overflows.
 */
#include "output.h"

#include <math.h>
#include <string.h>

#include "compute.h"
#include "faults.h"
#include "layout.h"
#include "settings.h"

bool mock_keeps_integers(const mock_type *type) {
  return type->c == RKNN_TENSOR_INT32 || type->c == RKNN_TENSOR_INT16;
}

float mock_saturate(float value, float least, float most) {
  return value < least ? least : value > most ? most : value; /* NaN stays; no caller hands one in */
}

float mock_common_scale(const float *scale, size_t count) {
  float most = 0;
  for (size_t i = 0; i < count; i++) most = fabsf(scale[i]) > most ? fabsf(scale[i]) : most;
  return most;
}

static float first_scale(const mock_context *context, mock_operand_id id) {
  return context->scales[id].scale ? context->scales[id].scale[0] : 1.0f;
}

/* Wraps do what a store without saturation does: the low bits of the rounded value. */
static void store(const mock_context *context, float value, size_t i, unsigned char *out, bool wraps) {
  uint16_t half;
  float rounded;
  switch (context->type->c) {
    case RKNN_TENSOR_INT8:
      rounded = rintf(value);
      if (!(rounded == rounded)) rounded = 0;
      if (wraps && fabsf(rounded) < 9e18f)
        out[i] = (unsigned char)(uint64_t)(int64_t)rounded;
      else
        out[i] = (unsigned char)(int8_t)mock_saturate(rounded, -128, 127);
      break;
    case RKNN_TENSOR_FLOAT16:
      half = mock_float_to_half(value);
      memcpy(out + 2 * i, &half, sizeof half);
      break;
    case RKNN_TENSOR_BFLOAT16:
      half = mock_float_to_bfloat16(value);
      memcpy(out + 2 * i, &half, sizeof half);
      break;
    default: memcpy(out + 4 * i, &value, sizeof value);
  }
}

static bool wraps_now(const mock_context *context) {
  return mock_fault_applies(FAULT_WRAP, context->type->code, context->runs);
}

/* Scale of column n for sums that carry no B scale yet. */
static float column_scale(const mock_context *context, size_t n) {
  const mock_scales *b = &context->scales[MOCK_B];
  if (!b->scale || context->b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM) return 1.0f;
  return context->b_quant == RKNN_QUANT_TYPE_PER_CHANNEL_SYM ? b->scale[n] : b->scale[0];
}

static float row_factor(const mock_context *context) {
  float factor = first_scale(context, MOCK_A);
  return context->type->c == RKNN_TENSOR_INT8 ? factor / first_scale(context, MOCK_C) : factor;
}

void mock_output_int(const mock_context *context, const int32_t *sum, size_t M, size_t N, unsigned char *out) {
  bool wraps = wraps_now(context);
  if (context->type->c == RKNN_TENSOR_INT32) {
    memcpy(out, sum, M * N * sizeof *sum);
    return;
  }
  if (context->type->c == RKNN_TENSOR_INT16) {
    wraps = wraps || mock_settings_get()->int16_wraps;
    for (size_t i = 0; i < M * N; i++) {
      int32_t value = wraps ? sum[i] : sum[i] < -32768 ? -32768 : sum[i] > 32767 ? 32767 : sum[i];
      uint16_t low = (uint16_t)value;
      memcpy(out + 2 * i, &low, sizeof low);
    }
    return;
  }
  float factor = row_factor(context);
  for (size_t m = 0; m < M; m++)
    for (size_t n = 0; n < N; n++)
      store(context, (float)sum[m * N + n] * (factor * column_scale(context, n)), m * N + n, out, wraps);
}

void mock_output_float(const mock_context *context, const float *sum, size_t M, size_t N, unsigned char *out) {
  float factor = row_factor(context);
  for (size_t m = 0; m < M; m++)
    for (size_t n = 0; n < N; n++)
      store(context, sum[m * N + n] * (factor * column_scale(context, n)), m * N + n, out, false);
}

void mock_output_grouped(const mock_context *context, const float *sum, size_t M, size_t N, unsigned char *out) {
  bool wraps = wraps_now(context);
  float factor = row_factor(context);
  for (size_t i = 0; i < M * N; i++) store(context, sum[i] * factor, i, out, wraps);
}

void mock_fill_unusable(rknn_tensor_type type, unsigned char *out, size_t elements) {
  const uint32_t nan = 0x7fc0dead;
  for (size_t i = 0; i < elements; i++) {
    const int32_t least32 = INT32_MIN;
    const int16_t ends16 = i % 2 ? INT16_MAX : INT16_MIN;
    const uint16_t half_nan = type == RKNN_TENSOR_FLOAT16 ? 0x7e5a : 0x7fda;
    switch (type) {
      case RKNN_TENSOR_INT32: memcpy(out + 4 * i, &least32, 4); break;
      case RKNN_TENSOR_INT16: memcpy(out + 2 * i, &ends16, 2); break;
      case RKNN_TENSOR_INT8: out[i] = i % 2 ? 0x7f : 0x80; break;
      case RKNN_TENSOR_FLOAT16:
      case RKNN_TENSOR_BFLOAT16: memcpy(out + 2 * i, &half_nan, 2); break;
      default: memcpy(out + 4 * i, &nan, 4);
    }
  }
}
