/* SPDX-License-Identifier: Apache-2.0
 *
 * The dequantisers by level. Private.
 */
#ifndef ENGINE_DEQUANT_LEVELS_H
#define ENGINE_DEQUANT_LEVELS_H

#include <stddef.h>
#include <stdint.h>

/* Numbers of ggml (gguf 0.19.0, GGMLQuantizationType). */
enum ek_type {
    EK_F32 = 0, EK_F16 = 1, EK_Q4_0 = 2, EK_Q4_1 = 3, EK_Q5_0 = 6, EK_Q5_1 = 7, EK_Q8_0 = 8, EK_Q2_K = 10, EK_Q3_K = 11,
    EK_Q4_K = 12, EK_Q5_K = 13, EK_Q6_K = 14, EK_IQ4_NL = 20, EK_IQ4_XS = 23, EK_BF16 = 30, EK_MXFP4 = 39,
};

typedef void ek_dequant_part(int type, const uint8_t *row, float *out, size_t k);

#endif
