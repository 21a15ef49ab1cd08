/* SPDX-License-Identifier: Apache-2.0
 *
 * Products of float arrays, summed in float in rising k: one fixed order, no fused multiply-add, so that every
 * machine and every number of threads gives the same bits.
 */
#ifndef MOCK_GEMM_FLOAT_H
#define MOCK_GEMM_FLOAT_H

#include <stddef.h>

typedef struct mock_float_b mock_float_b;

/* B row-major [K,N]; NULL when out of memory. */
mock_float_b *mock_float_pack(const float *B, size_t K, size_t N);
void mock_float_free(mock_float_b *packed);
/* C[M,N] = A[M,K] x B restricted to k in [k0, k1). lda: distance of A's rows. C has N columns. 0, or -1 when out of
 * memory. */
int mock_float_gemm(const float *A, size_t lda, const mock_float_b *B, float *C, size_t M, size_t k0, size_t k1,
                    int threads);

#endif
