/* SPDX-License-Identifier: Apache-2.0
 *
 * Preparing operands and multiplying.
 *
 * Integer inputs: int32 sums modulo 2^32 through the int8 kernels. fp16 A: float sums. Scales (per layer, channel or
 * group) act as the API reference says: result = sum x scale A x scale B (/ scale C for int8 output). For int32 and
 * int16 output with per-channel scales B is first brought to one common scale, the largest, and rounded to int8; that
 * is what rknn_matmul_get_quant_params reports on. Its exact rounding on the chip is not known.
 */
#include "compute.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "gemm_float.h"
#include "kernels/gemm_s8.h"
#include "output.h"
#include "settings.h"

struct mock_prepared {
  bool a_ready, b_ready, c_ready;
  mock_variant variant;
  int shape;
  unsigned long a_change, b_change, scales_change;
  int8_t *a8;
  float *af;
  int groups; /* parts of K with a scale each; 1 without per-group quantisation */
  mock_gemm_b **b8;
  mock_float_b *bf;
  unsigned char *c;
};

static atomic_ulong memo_hits;

unsigned long mock_memo_hits(void) { return atomic_load(&memo_hits); }

static void forget_a(mock_prepared *p) {
  free(p->a8);
  free(p->af);
  p->a8 = NULL;
  p->af = NULL;
  p->a_ready = p->c_ready = false;
}

static void forget_b(mock_prepared *p) {
  for (int g = 0; p->b8 && g < p->groups; g++) mock_gemm_s8_free(p->b8[g]);
  free(p->b8);
  mock_float_free(p->bf);
  p->b8 = NULL;
  p->bf = NULL;
  p->b_ready = p->c_ready = false;
}

void mock_prepared_free(mock_prepared *p) {
  if (!p) return;
  forget_a(p);
  forget_b(p);
  free(p->c);
  free(p);
}

mock_layout mock_context_layout(const mock_context *context) {
  const mock_soc *soc = mock_settings_get()->soc;
  return (mock_layout){context->type,     context->tile,         context->a_native,
                       context->b_native, context->b_transposed, mock_this_runtime.segments ? soc->k_segment : 0};
}

static bool is_float(const mock_context *context) { return context->type->a == RKNN_TENSOR_FLOAT16; }

static int prepare_a(mock_context *context, const mock_variant *variant, const rknn_matmul_shape *shape) {
  mock_prepared *p = context->prepared;
  const mock_operand *a = &context->operand[MOCK_A];
  const unsigned char *raw = variant->stale_a && a->first ? a->first : a->raw;
  mock_layout layout = mock_context_layout(context);
  size_t M = (size_t)shape->M, K = (size_t)shape->K, dropped = (size_t)variant->k_dropped;
  int code;
  if (dropped > K) dropped = K;
  if (is_float(context)) {
    p->af = malloc(M * K * sizeof *p->af);
    code = p->af ? mock_gather_af(&layout, shape, raw, p->af, variant->reading) : -1;
    for (size_t m = 0; code == 0 && dropped && m < M; m++)
      memset(p->af + (m + 1) * K - dropped, 0, dropped * sizeof *p->af);
  } else {
    p->a8 = malloc(M * K);
    code = p->a8 ? mock_gather_a8(&layout, shape, raw, p->a8, variant->reading) : -1;
    for (size_t m = 0; code == 0 && dropped && m < M; m++) memset(p->a8 + (m + 1) * K - dropped, 0, dropped);
  }
  return code;
}

/* Brings B's channels to the largest scale, for integer output that has room for one scale only. */
static void normalise_channels(int8_t *b, size_t K, size_t N, const float *scale) {
  float common = mock_common_scale(scale, N);
  for (size_t n = 0; n < N && common > 0; n++) {
    float ratio = scale[n] / common;
    for (size_t k = 0; k < K; k++)
      b[k * N + n] = (int8_t)mock_saturate(rintf((float)b[k * N + n] * ratio), -128, 127);
  }
}

/* Scale of group g and column n stands at [g * N + n]. */
static void scale_groups(float *b, size_t K, size_t N, size_t group, const float *scale) {
  for (size_t k = 0; k < K; k++)
    for (size_t n = 0; n < N; n++) b[k * N + n] *= scale[k / group * N + n];
}

static int prepare_b(mock_context *context, const mock_variant *variant, const rknn_matmul_shape *shape) {
  mock_prepared *p = context->prepared;
  const mock_operand *operand = &context->operand[MOCK_B];
  const unsigned char *raw = variant->stale_b && operand->first ? operand->first : operand->raw;
  const float *scale = context->scales[MOCK_B].scale;
  mock_layout layout = mock_context_layout(context);
  size_t K = (size_t)shape->K, N = (size_t)shape->N;
  bool grouped = context->b_quant == RKNN_QUANT_TYPE_PER_GROUP_SYM,
       channels = context->b_quant == RKNN_QUANT_TYPE_PER_CHANNEL_SYM;
  p->groups = 1;
  if (is_float(context)) {
    float *b = malloc(K * N * sizeof *b);
    int code = b ? mock_gather_bf(&layout, shape, raw, b, variant->reading) : -1;
    if (code == 0 && grouped && scale) scale_groups(b, K, N, (size_t)context->group_size, scale);
    p->bf = code == 0 ? mock_float_pack(b, K, N) : NULL;
    free(b);
    return p->bf ? 0 : -1;
  }
  int8_t *b = malloc(K * N);
  int code = b ? mock_gather_b8(&layout, shape, raw, b, variant->reading) : -1;
  if (code == 0 && channels && scale && mock_keeps_integers(context->type)) normalise_channels(b, K, N, scale);
  int groups = grouped && scale ? (int)(K / (size_t)context->group_size) : 1;
  p->b8 = code == 0 ? calloc((size_t)groups, sizeof *p->b8) : NULL;
  if (p->b8) p->groups = groups;
  for (int g = 0; p->b8 && g < groups && code == 0; g++) {
    p->b8[g] = mock_gemm_s8_pack(b + (size_t)g * (K / (size_t)groups) * N, K / (size_t)groups, N);
    code = p->b8[g] ? 0 : -1;
  }
  free(b);
  return p->b8 ? code : -1;
}

/* fp16 sums, rounded after every 32 products. */
static int sum_in_half(const mock_prepared *p, float *sum, const rknn_matmul_shape *shape, int threads) {
  size_t M = (size_t)shape->M, K = (size_t)shape->K, N = (size_t)shape->N;
  float *part = malloc(M * N * sizeof *part);
  if (!part) return -1;
  memset(sum, 0, M * N * sizeof *sum);
  for (size_t k = 0; k < K; k += 32) {
    mock_float_gemm(p->af, K, p->bf, part, M, k, K - k < 32 ? K : k + 32, threads);
    for (size_t i = 0; i < M * N; i++) sum[i] = mock_half_to_float(mock_float_to_half(sum[i] + part[i]));
  }
  free(part);
  return 0;
}

static int multiply_float(mock_context *context, const mock_variant *variant, const rknn_matmul_shape *shape) {
  const mock_prepared *p = context->prepared;
  int threads = mock_settings_get()->threads;
  size_t M = (size_t)shape->M, K = (size_t)shape->K, N = (size_t)shape->N;
  float *sum = malloc(M * N * sizeof *sum);
  int code = !sum                      ? -1
             : variant->f16_accumulate ? sum_in_half(p, sum, shape, threads)
                                       : mock_float_gemm(p->af, K, p->bf, sum, M, 0, K, threads);
  if (code == 0) mock_output_float(context, sum, M, N, p->c);
  free(sum);
  return code;
}

static int multiply_int(mock_context *context, const rknn_matmul_shape *shape) {
  const mock_prepared *p = context->prepared;
  int threads = mock_settings_get()->threads, code = 0;
  size_t M = (size_t)shape->M, K = (size_t)shape->K, N = (size_t)shape->N, part = K / (size_t)p->groups;
  int32_t *sum = malloc(M * N * sizeof *sum);
  float *scaled = sum && p->groups > 1 ? calloc(M * N, sizeof *scaled) : NULL;
  if (!sum || (p->groups > 1 && !scaled)) code = -1;
  for (int g = 0; g < p->groups && code == 0; g++) {
    code = mock_gemm_s8(p->a8 + (size_t)g * part, K, p->b8[g], sum, N, M, threads);
    const float *scale = context->scales[MOCK_B].scale ? context->scales[MOCK_B].scale + (size_t)g * N : NULL;
    for (size_t i = 0; scaled && code == 0 && i < M * N; i++) scaled[i] += (float)sum[i] * scale[i % N];
  }
  if (code == 0 && scaled) mock_output_grouped(context, scaled, M, N, p->c);
  if (code == 0 && !scaled) mock_output_int(context, sum, M, N, p->c);
  free(scaled);
  free(sum);
  return code;
}

static bool same_variant(const mock_variant *a, const mock_variant *b) {
  return a->reading.high_nibble_first == b->reading.high_nibble_first &&
         a->reading.positive_half == b->reading.positive_half && a->k_dropped == b->k_dropped &&
         a->stale_a == b->stale_a && a->stale_b == b->stale_b && a->f16_accumulate == b->f16_accumulate &&
         a->wraps == b->wraps;
}

const unsigned char *mock_compute(mock_context *context, const mock_variant *variant) {
  const rknn_matmul_shape *shape = &context->shapes[context->current];
  if (!context->prepared) context->prepared = calloc(1, sizeof *context->prepared);
  mock_prepared *p = context->prepared;
  if (!p) return NULL;
  unsigned long a_change = context->operand[MOCK_A].change, b_change = context->operand[MOCK_B].change;
  bool same = same_variant(&p->variant, variant), same_shape = p->shape == context->current;
  if (!(p->a_ready && same && same_shape && p->a_change == a_change)) forget_a(p);
  if (!(p->b_ready && same && p->b_change == b_change && p->scales_change == context->scales_change)) forget_b(p);
  if (p->c_ready && mock_settings_get()->memo != MEMO_OFF) {
    atomic_fetch_add(&memo_hits, 1);
    return p->c;
  }
  p->variant = *variant;
  p->shape = context->current;
  p->a_change = a_change;
  p->b_change = b_change;
  p->scales_change = context->scales_change;
  size_t size = (size_t)shape->M * (size_t)shape->N * mock_bits_of(context->type->c) / 8;
  unsigned char *room = realloc(p->c, size);
  p->c_ready = false;
  if (!room) return NULL;
  p->c = room;
  if (!p->a_ready && !(p->a_ready = prepare_a(context, variant, shape) == 0)) return NULL;
  if (!p->b_ready && !(p->b_ready = prepare_b(context, variant, shape) == 0)) return NULL;
  int code = is_float(context) ? multiply_float(context, variant, shape) : multiply_int(context, shape);
  p->c_ready = code == 0;
  return code == 0 ? p->c : NULL;
}
