/* SPDX-License-Identifier: Apache-2.0 */
#include "ddr_work.h"

#include <string.h>

#ifndef DOT_FAULT /* a test builds this file with a fault, to see the check fail */
#define DOT_FAULT 0
#endif

typedef int8_t bytes8 __attribute__((vector_size(8)));
typedef int16_t halves8 __attribute__((vector_size(16)));
typedef int32_t ints8 __attribute__((vector_size(32)));

void dot_fill(struct dot_data *data) {
  uint64_t state = 1; /* multiplicative generator of Knuth's MMIX, high bits */
  int8_t *each[] = {data->a[0], data->b[0]};
  for (int which = 0; which < 2; which++)
    for (int i = 0; i < DOT_ROWS * DOT_LENGTH; i++) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      each[which][i] = (int8_t)(state >> 56);
    }
}

/* Products of int8 fit into 16 bits (at most 128 x 128); sums of 2048 of them fit into 32. */
static int32_t dot(const int8_t *a, const int8_t *b) {
  ints8 sum = {0};
  for (int i = 0; i < DOT_LENGTH; i += 8) {
    bytes8 left, right;
    memcpy(&left, a + i, sizeof left);
    memcpy(&right, b + i, sizeof right);
    const halves8 product = __builtin_convertvector(left, halves8) * __builtin_convertvector(right, halves8);
    sum += __builtin_convertvector(product, ints8);
  }
  return sum[0] + sum[1] + sum[2] + sum[3] + sum[4] + sum[5] + sum[6] + sum[7];
}

int64_t dot_unit(const struct dot_data *data) {
  int64_t total = DOT_FAULT;
  for (int round = 0; round < DOT_ROUNDS; round++) {
    for (int i = 0; i < DOT_ROWS; i++)
      for (int j = 0; j < DOT_ROWS; j++) total += dot(data->a[i], data->b[j]);
    __asm__ volatile("" : : "r"(data) : "memory"); /* the next round is done again */
  }
  return total;
}

int64_t dot_expected(const struct dot_data *data) {
  /* sum over rows of a times sum over rows of b, column by column: another order than the work has */
  int64_t total = 0;
  for (int k = 0; k < DOT_LENGTH; k++) {
    int64_t left = 0, right = 0;
    for (int i = 0; i < DOT_ROWS; i++) {
      left += data->a[i][k];
      right += data->b[i][k];
    }
    total += left * right;
  }
  return total * DOT_ROUNDS;
}

double dot_macs(void) { return (double)DOT_ROUNDS * DOT_ROWS * DOT_ROWS * DOT_LENGTH; }

/* Adding a register, for some cores fold chains of additions of a constant. On 32-bit Arm the low word is enough. */
uint64_t add_chain(uint64_t value, uint64_t step, uint64_t rounds) {
#if defined(__x86_64__)
  for (; rounds; rounds--) __asm__ volatile(".rept 1000\n\tadd %1, %0\n\t.endr" : "+r"(value) : "r"(step) : "cc");
#elif defined(__aarch64__)
  for (; rounds; rounds--) __asm__ volatile(".rept 1000\n\tadd %0, %0, %1\n\t.endr" : "+r"(value) : "r"(step));
#elif defined(__arm__)
  uint32_t low = (uint32_t)value;
  const uint32_t low_step = (uint32_t)step;
  for (; rounds; rounds--) __asm__ volatile(".rept 1000\n\tadd %0, %0, %1\n\t.endr" : "+r"(low) : "r"(low_step));
  value = low;
#else
#error "add_chain is written for x86-64, aarch64 and 32-bit Arm"
#endif
  return value;
}
