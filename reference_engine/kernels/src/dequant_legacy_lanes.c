/* SPDX-License-Identifier: Apache-2.0
 *
 * Plain floats and the types of 32-element blocks. Formats: ggml-common.h; order of operations: the gguf package.
 */
#include "dequant_types.h"
#include "half.h"
#include "levels.h"

enum { BLOCK = 32, HALF_BLOCK = 16 };

/* The sixteen levels of IQ4_NL and, doubled, of MXFP4 (e2m1). */
static const int8_t nonlinear[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const int8_t e2m1[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

static inline float half_at(const uint8_t *p)
{
    return ek_half_to_float((uint16_t)(p[0] | p[1] << 8));
}

static void from_f16(const uint8_t *row, float *out, size_t k)
{
    for (size_t i = 0; i < k; i++)
        out[i] = half_at(row + 2 * i);
}

static void from_bf16(const uint8_t *row, float *out, size_t k)
{
    for (size_t i = 0; i < k; i++)
        out[i] = ek_from_bits((uint32_t)(row[2 * i] | row[2 * i + 1] << 8) << 16);
}

static void from_q4(const uint8_t *row, float *out, size_t k, int has_min)
{
    for (; k; k -= BLOCK, out += BLOCK, row += (has_min ? 4 : 2) + HALF_BLOCK) {
        float d = half_at(row), m = has_min ? half_at(row + 2) : 0.0f;
        const uint8_t *q = row + (has_min ? 4 : 2);
        for (int i = 0; i < HALF_BLOCK; i++) {
            int low = q[i] & 15, high = q[i] >> 4;
            out[i] = has_min ? d * (float)low + m : d * (float)(low - 8);
            out[i + HALF_BLOCK] = has_min ? d * (float)high + m : d * (float)(high - 8);
        }
    }
}

static void from_q5(const uint8_t *row, float *out, size_t k, int has_min)
{
    for (; k; k -= BLOCK, out += BLOCK, row += (has_min ? 8 : 6) + HALF_BLOCK) {
        float d = half_at(row), m = has_min ? half_at(row + 2) : 0.0f;
        const uint8_t *h = row + (has_min ? 4 : 2), *q = h + 4;
        uint32_t fifth = (uint32_t)h[0] | (uint32_t)h[1] << 8 | (uint32_t)h[2] << 16 | (uint32_t)h[3] << 24;
        for (int i = 0; i < HALF_BLOCK; i++) {
            int low = (q[i] & 15) | (int)(fifth >> i & 1) << 4, high = q[i] >> 4 | (int)(fifth >> (i + 16) & 1) << 4;
            out[i] = has_min ? d * (float)low + m : d * (float)(low - 16);
            out[i + HALF_BLOCK] = has_min ? d * (float)high + m : d * (float)(high - 16);
        }
    }
}

static void from_q8(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= BLOCK, out += BLOCK, row += 2 + BLOCK) {
        float d = half_at(row);
        for (int i = 0; i < BLOCK; i++)
            out[i] = (float)(int8_t)row[2 + i] * d;
    }
}

static void from_levels(const uint8_t *q, float d, const int8_t level[16], float *out)
{
    for (int i = 0; i < HALF_BLOCK; i++) {
        out[i] = d * (float)level[q[i] & 15];
        out[i + HALF_BLOCK] = d * (float)level[q[i] >> 4];
    }
}

static void from_iq4_nl(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= BLOCK, out += BLOCK, row += 2 + HALF_BLOCK)
        from_levels(row + 2, half_at(row), nonlinear, out);
}

/* The scale is half of 2^(e - 127); e of 0 and 1 give subnormal numbers. */
static void from_mxfp4(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= BLOCK, out += BLOCK, row += 1 + HALF_BLOCK) {
        uint32_t e = row[0];
        from_levels(row + 1, ek_from_bits(e < 2 ? 0x00200000u << e : (e - 1) << 23), e2m1, out);
    }
}

/* 256 elements: d, 8 scales of 6 bits around 32, 4-bit indices of the levels above. */
static void from_iq4_xs(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= 256, out += 256, row += 136) {
        float d = half_at(row);
        uint32_t high = (uint32_t)(row[2] | row[3] << 8);
        for (int g = 0; g < 8; g++) {
            int low = row[4 + g / 2] >> (4 * (g % 2)) & 15, scale = (low | (int)(high >> (2 * g) & 3) << 4) - 32;
            from_levels(row + 8 + 16 * g, d * (float)scale, nonlinear, out + 32 * g);
        }
    }
}

void EK_AT(ek_dequant_legacy)(int type, const uint8_t *row, float *out, size_t k)
{
    switch (type) {
    case EK_F32: memcpy(out, row, k * sizeof *out); break;
    case EK_F16: from_f16(row, out, k); break;
    case EK_BF16: from_bf16(row, out, k); break;
    case EK_Q4_0: from_q4(row, out, k, 0); break;
    case EK_Q4_1: from_q4(row, out, k, 1); break;
    case EK_Q5_0: from_q5(row, out, k, 0); break;
    case EK_Q5_1: from_q5(row, out, k, 1); break;
    case EK_Q8_0: from_q8(row, out, k); break;
    case EK_IQ4_NL: from_iq4_nl(row, out, k); break;
    case EK_IQ4_XS: from_iq4_xs(row, out, k); break;
    case EK_MXFP4: from_mxfp4(row, out, k); break;
    }
}
