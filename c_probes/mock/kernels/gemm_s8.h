/* SPDX-License-Identifier: Apache-2.0
 *
 * Exact int8 matrix product of the mock: C[M,N] = A[M,K] x B[K,N] with int32 sums modulo 2^32.
 *
 * Every path (chosen at run time by what the CPU offers) gives the same bits for every M, K and N.
 * All functions may be called from many threads at once, also in the child of a fork.
 */
#ifndef MOCK_GEMM_S8_H
#define MOCK_GEMM_S8_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* B in the order the kernels read it. It is independent of the path and never changes after packing. */
typedef struct mock_gemm_b mock_gemm_b;

/* Packs B, row-major [K,N]; any K and N, zero included. NULL when out of memory. */
mock_gemm_b *mock_gemm_s8_pack(const int8_t *B_kn, size_t K, size_t N);
void mock_gemm_s8_free(mock_gemm_b *b);

/* C[M,N] int32 (row stride ldc elements) = A[M,K] int8 (row stride lda elements) x B, exact modulo 2^32.
 * `threads` is the most threads that work on it, the caller included; 1 or less stays in the caller.
 * 0, or -1 when out of memory or when RKNN_MOCK_KERNEL names no usable path (mock_gemm_s8_error says so). */
int mock_gemm_s8(const int8_t *A, size_t lda, const mock_gemm_b *B, int32_t *C, size_t ldc, size_t M, int threads);

/* The path in use: "avx512-vnni", "avx-vnni", "avx2", "neon-dot", "neon" or "c".
 * NULL when RKNN_MOCK_KERNEL names no usable path. */
const char *mock_gemm_s8_path(void);

/* Forces a path by name, for tests; 0, or -1 (nothing changes) when the name is unknown or this CPU lacks it.
 * NULL returns to the automatic choice, RKNN_MOCK_KERNEL included. */
int mock_gemm_s8_force(const char *name);

/* NULL while a path is in use; else one sentence that says what is wrong with RKNN_MOCK_KERNEL. */
const char *mock_gemm_s8_error(void);

#ifdef __cplusplus
}
#endif

#endif
