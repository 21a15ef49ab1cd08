/* SPDX-License-Identifier: Apache-2.0
 *
 * What the SIMD tiles share: their loops over rows and vectors have constant bounds and are unrolled whole, so that
 * an array of sums becomes registers. Private to this folder.
 */
#ifndef MOCK_GEMM_TILE_H
#define MOCK_GEMM_TILE_H

#include "gemm_path.h"

#include <string.h>

#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif
#define ALWAYS_INLINE inline __attribute__((always_inline))

/* Four packed bytes of A as the word that a broadcast takes. */
static ALWAYS_INLINE int gemm_word(const void *p)
{
    int word;
    memcpy(&word, p, sizeof word);
    return word;
}

#endif
