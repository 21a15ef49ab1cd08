/* SPDX-License-Identifier: Apache-2.0
 *
 * Arithmetic modulo the prime p = 2^61 - 1, and dot products of small integers with a random vector modulo p. No
 * 128-bit type is used, for 32-bit Arm has none: the random numbers are kept in limbs short enough that a sum of
 * products stays inside 64 bits. */
#ifndef RKNPU_KIT_MERSENNE_H
#define RKNPU_KIT_MERSENNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MERSENNE_P ((UINT64_C(1) << 61) - 1)

uint64_t mersenne_of(int64_t value); /* value mod p, in 0..p-1 */
uint64_t mersenne_add(uint64_t a, uint64_t b);
uint64_t mersenne_shift(uint64_t a, unsigned bits); /* a * 2^bits, 0 <= bits <= 60 */

/* A vector over the field, cut two ways. */
struct field_vector {
  size_t count;
  uint32_t *wide[2];   /* bits 0..30 and 31..60: for int8 */
  uint32_t *narrow[3]; /* bits 0..20, 21..40, 41..60: for int32 */
};

bool field_vector_init(struct field_vector *vector, size_t count); /* false when out of memory */
void field_vector_free(struct field_vector *vector);
void field_vector_set(struct field_vector *vector, size_t at, uint64_t value);

uint64_t dot_int8(const int8_t *values, const struct field_vector *vector);
uint64_t dot_int32(const int32_t *values, const struct field_vector *vector);

#endif
