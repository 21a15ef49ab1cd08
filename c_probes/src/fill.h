/* SPDX-License-Identifier: Apache-2.0
 *
 * What the operands are filled with. Values are small integers, chosen so that every partial sum in any order, and the
 * result, is exactly representable in the type of C: then an exact comparison is right for every dtype. */
#ifndef RKNPU_KIT_FILL_H
#define RKNPU_KIT_FILL_H

#include <stdint.h>

struct fill_plan {
  int a_min, a_max, b_min, b_max;
  int nonzeros_per_row; /* of A; K when A is dense */
};

/* Ranges for A[M,K] x B[K,N] with these rknn_tensor_type values. Where the type of C is too narrow for dense operands
 * A keeps a bounded number of non-zero values per row, spread over all of K. The bound on sum |a| |b|: int32 2^31 - 1,
 * float32 2^24 - 1, float16 2048, bfloat16 256, int8 127; int16 23000, so that no right answer is a sentinel word. */
struct fill_plan fill_plan_for(int M, int K, int a_type, int b_type, int c_type);

/* Next value of the splitmix64 generator (public domain, S. Vigna 2015). */
uint64_t random_next(uint64_t *state);

/* A is row-major [M,K], B row-major [K,N]; the same seed gives the same values on every machine. */
void fill_A(int8_t *A, int M, int K, const struct fill_plan *plan, uint64_t seed);
void fill_B(int8_t *B, int K, int N, const struct fill_plan *plan, uint64_t seed);

#endif
