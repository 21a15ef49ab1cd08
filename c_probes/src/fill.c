/* SPDX-License-Identifier: Apache-2.0 */
#include "fill.h"

#include <math.h>
#include <string.h>

#include "names.h"

static int64_t limit_of(int c_type) {
  switch (c_type) {
    case RKNN_TENSOR_INT8: return 127;
    case RKNN_TENSOR_INT16: return 23000;
    case RKNN_TENSOR_FLOAT16: return 2048;
    case RKNN_TENSOR_BFLOAT16: return 256;
    case RKNN_TENSOR_FLOAT32: return (1 << 24) - 1;
    default: return INT32_MAX;
  }
}

/* Largest magnitude of an input: the whole range of the integers; floats stop where an int8 holds the value. */
static int magnitude_of(int type) {
  return type == RKNN_TENSOR_INT4 ? 8 : type == RKNN_TENSOR_INT8 ? 128 : 127;
}

static void set_range(int *low, int *high, int magnitude, int type) {
  int top = type == RKNN_TENSOR_INT4 ? 7 : 127;
  *low = -magnitude;
  *high = magnitude < top ? magnitude : top;
}

struct fill_plan fill_plan_for(int M, int K, int a_type, int b_type, int c_type) {
  static const int tries[] = {8, 7, 5, 4, 3, 2, 1};
  const int64_t limit = limit_of(c_type);
  const int a_most = magnitude_of(a_type), b_most = magnitude_of(b_type);
  int a = a_most, b = b_most;
  int64_t nonzeros = K;
  if (limit / K < (int64_t)a * b) { /* narrower values, as long as they stay interesting */
    int root = (int)sqrt((double)limit / K);
    a = root < a_most ? root : a_most;
    b = a > 0 && limit / K / a < b_most ? (int)(limit / K / a) : b_most;
    if (a < 8 || b < 8) { /* then fewer of them: enough per row to cover K over all rows, at least eight */
      for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        a = b = tries[i];
        nonzeros = limit / ((int64_t)a * b);
        if (nonzeros > K) nonzeros = K;
        if (nonzeros == K || (nonzeros >= 8 && nonzeros * M >= K)) break;
      }
    }
  }
  struct fill_plan plan = {.nonzeros_per_row = (int)nonzeros};
  set_range(&plan.a_min, &plan.a_max, a, a_type);
  set_range(&plan.b_min, &plan.b_max, b, b_type);
  return plan;
}

uint64_t random_next(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Uniform up to the rounding of 256 / range, which is no matter here. */
static void fill_dense(int8_t *values, size_t count, int low, int high, uint64_t seed) {
  const unsigned range = (unsigned)(high - low + 1);
  for (size_t i = 0; i < count; i += 8) {
    uint64_t bits = random_next(&seed);
    size_t these = count - i < 8 ? count - i : 8;
    for (size_t j = 0; j < these; j++, bits >>= 8)
      values[i + j] = (int8_t)(low + (int)(((unsigned)(bits & 0xff) * range) >> 8));
  }
}

void fill_A(int8_t *A, int M, int K, const struct fill_plan *plan, uint64_t seed) {
  if (plan->nonzeros_per_row >= K) {
    fill_dense(A, (size_t)M * (size_t)K, plan->a_min, plan->a_max, seed);
    return;
  }
  memset(A, 0, (size_t)M * (size_t)K);
  const unsigned values = (unsigned)(plan->a_max - plan->a_min); /* all of the range but 0 */
  for (int row = 0; row < M; row++) {
    for (int i = 0; i < plan->nonzeros_per_row; i++) { /* one in each of equal stretches of K */
      int from = (int)((int64_t)K * i / plan->nonzeros_per_row);
      int to = (int)((int64_t)K * (i + 1) / plan->nonzeros_per_row);
      uint64_t bits = random_next(&seed);
      int value = plan->a_min + (int)((bits >> 32) % values);
      A[(size_t)row * (size_t)K + (size_t)from + (uint32_t)bits % (unsigned)(to - from)] =
          (int8_t)(value < 0 ? value : value + 1);
    }
  }
}

void fill_B(int8_t *B, int K, int N, const struct fill_plan *plan, uint64_t seed) {
  fill_dense(B, (size_t)K * (size_t)N, plan->b_min, plan->b_max, ~seed);
}
