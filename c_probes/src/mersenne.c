/* SPDX-License-Identifier: Apache-2.0 */
#include "mersenne.h"

#include <stdlib.h>
#include <string.h>

uint64_t mersenne_of(int64_t value) {
  if (value >= 0) return (uint64_t)value % MERSENNE_P;
  const uint64_t rest = (0 - (uint64_t)value) % MERSENNE_P;
  return rest ? MERSENNE_P - rest : 0;
}

uint64_t mersenne_add(uint64_t a, uint64_t b) {
  const uint64_t sum = a + b;
  return sum >= MERSENNE_P ? sum - MERSENNE_P : sum;
}

uint64_t mersenne_shift(uint64_t a, unsigned bits) {
  if (bits == 0) return a;
  const uint64_t turned = ((a << bits) & MERSENNE_P) | a >> (61 - bits); /* 2^61 = 1 */
  return turned == MERSENNE_P ? 0 : turned;
}

bool field_vector_init(struct field_vector *vector, size_t count) {
  memset(vector, 0, sizeof *vector);
  uint32_t *all = calloc(count ? count : 1, 5 * sizeof *all);
  if (!all) return false;
  vector->count = count;
  for (size_t i = 0; i < 2; i++) vector->wide[i] = all + i * count;
  for (size_t i = 0; i < 3; i++) vector->narrow[i] = all + (i + 2) * count;
  return true;
}

void field_vector_free(struct field_vector *vector) {
  free(vector->wide[0]);
  memset(vector, 0, sizeof *vector);
}

void field_vector_set(struct field_vector *vector, size_t at, uint64_t value) {
  vector->wide[0][at] = (uint32_t)(value & 0x7fffffffu);
  vector->wide[1][at] = (uint32_t)(value >> 31);
  vector->narrow[0][at] = (uint32_t)(value & 0x1fffffu);
  vector->narrow[1][at] = (uint32_t)(value >> 21 & 0xfffffu);
  vector->narrow[2][at] = (uint32_t)(value >> 41);
}

/* |product| < 2^38, so 2^24 of them fit; longer vectors are cut. */
uint64_t dot_int8(const int8_t *values, const struct field_vector *vector) {
  uint64_t total = 0;
  for (size_t start = 0; start < vector->count; start += (size_t)1 << 24) {
    const size_t left = vector->count - start, here = left < (size_t)1 << 24 ? left : (size_t)1 << 24;
    const int8_t *v = values + start;
    const uint32_t *low = vector->wide[0] + start, *high = vector->wide[1] + start;
    int64_t sum_low = 0, sum_high = 0;
    for (size_t i = 0; i < here; i++) {
      sum_low += (int64_t)v[i] * low[i];
      sum_high += (int64_t)v[i] * high[i];
    }
    total = mersenne_add(total, mersenne_of(sum_low));
    total = mersenne_add(total, mersenne_shift(mersenne_of(sum_high), 31));
  }
  return total;
}

/* |product| <= 2^52, so 1024 of them fit. */
uint64_t dot_int32(const int32_t *values, const struct field_vector *vector) {
  uint64_t total = 0;
  for (size_t start = 0; start < vector->count; start += 1024) {
    const size_t left = vector->count - start, here = left < 1024 ? left : 1024;
    const int32_t *v = values + start;
    const uint32_t *x0 = vector->narrow[0] + start, *x1 = vector->narrow[1] + start, *x2 = vector->narrow[2] + start;
    int64_t sum0 = 0, sum1 = 0, sum2 = 0;
    for (size_t i = 0; i < here; i++) {
      sum0 += (int64_t)v[i] * x0[i];
      sum1 += (int64_t)v[i] * x1[i];
      sum2 += (int64_t)v[i] * x2[i];
    }
    total = mersenne_add(total, mersenne_of(sum0));
    total = mersenne_add(total, mersenne_shift(mersenne_of(sum1), 21));
    total = mersenne_add(total, mersenne_shift(mersenne_of(sum2), 41));
  }
  return total;
}
