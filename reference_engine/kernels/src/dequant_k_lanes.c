/* SPDX-License-Identifier: Apache-2.0
 *
 * The K types: blocks of 256 elements with scales of their groups. Formats: ggml-common.h; order of operations: the
 * gguf package.
 */
#include "dequant_types.h"
#include "half.h"
#include "levels.h"

enum { SUPER = 256 };

static inline float half_at(const uint8_t *p)
{
    return ek_half_to_float((uint16_t)(p[0] | p[1] << 8));
}

/* 16 bytes of (min, scale) nibbles, 64 bytes of 2-bit values, d, dmin. */
static void from_q2(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= SUPER, row += 84) {
        float d = half_at(row + 80), least = half_at(row + 82);
        for (int part = 0; part < 2; part++)
            for (int shift = 0; shift < 8; shift += 2)
                for (int half = 0; half < 2; half++, out += 16) {
                    const uint8_t *q = row + 16 + 32 * part + 16 * half, *s = row + 8 * part + shift + half;
                    float scale = d * (float)(*s & 15), min = least * (float)(*s >> 4);
                    for (int i = 0; i < 16; i++)
                        out[i] = scale * (float)(q[i] >> shift & 3) - min;
                }
    }
}

/* 32 bytes of third bits, 64 bytes of 2-bit values, 12 bytes with 16 scales of 6 bits, d. */
static void from_q3(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= SUPER, row += 110) {
        const uint8_t *scales = row + 96;
        float d = half_at(row + 108);
        for (int group = 0; group < 16; group++, out += 16) {
            int low = scales[group % 8] >> (4 * (group / 8)) & 15, high = scales[8 + group % 4] >> (2 * (group / 4)) & 3;
            float scale = d * (float)((low | high << 4) - 32);
            const uint8_t *q = row + 32 + 32 * (group / 8) + 16 * (group % 2), *third = row + 16 * (group % 2);
            int shift = group / 2 % 4 * 2, bit = group / 2;
            for (int i = 0; i < 16; i++)
                out[i] = scale * (float)((q[i] >> shift & 3) - ((third[i] >> bit & 1) ? 0 : 4));
        }
    }
}

/* Scale and minimum of group g of 8, 6 bits each in 12 bytes. */
static inline void scale_and_min(const uint8_t *s, int g, int *scale, int *min)
{
    if (g < 4) {
        *scale = s[g] & 63;
        *min = s[g + 4] & 63;
    } else {
        *scale = (s[g + 4] & 15) | (s[g - 4] >> 2 & 48);
        *min = s[g + 4] >> 4 | (s[g] >> 2 & 48);
    }
}

/* d, dmin, 12 bytes of scales, (Q5: 32 bytes of fifth bits,) 128 bytes of nibbles. */
static void from_q4_or_q5(const uint8_t *row, float *out, size_t k, int five)
{
    for (; k; k -= SUPER, row += five ? 176 : 144) {
        float d = half_at(row), least = half_at(row + 2);
        const uint8_t *fifth = row + 16, *nibbles = row + (five ? 48 : 16);
        for (int g = 0; g < 8; g++, out += 32) {
            int scale, min, shift = 4 * (g % 2);
            scale_and_min(row + 4, g, &scale, &min);
            float ds = d * (float)scale, dm = least * (float)min;
            const uint8_t *q = nibbles + 32 * (g / 2);
            if (five)
                for (int i = 0; i < 32; i++)
                    out[i] = ds * (float)((q[i] >> shift & 15) | (fifth[i] >> g & 1) << 4) - dm;
            else
                for (int i = 0; i < 32; i++)
                    out[i] = ds * (float)(q[i] >> shift & 15) - dm;
        }
    }
}

/* 128 bytes of nibbles, 64 bytes of upper 2 bits, 16 signed scales, d. */
static void from_q6(const uint8_t *row, float *out, size_t k)
{
    for (; k; k -= SUPER, row += 210) {
        float d = half_at(row + 208);
        for (int g = 0; g < 16; g++, out += 16) {
            int part = g / 8, in_part = g % 8;
            const uint8_t *low = row + 64 * part + 16 * (in_part % 4), *high = row + 128 + 32 * part + 16 * (g % 2);
            int shift = 4 * (in_part / 4), upper = 2 * (in_part / 2);
            float scale = d * (float)(int8_t)row[192 + g];
            for (int i = 0; i < 16; i++)
                out[i] = scale * (float)(((low[i] >> shift & 15) | (high[i] >> upper & 3) << 4) - 32);
        }
    }
}

void EK_AT(ek_dequant_k)(int type, const uint8_t *row, float *out, size_t k)
{
    switch (type) {
    case EK_Q2_K: from_q2(row, out, k); break;
    case EK_Q3_K: from_q3(row, out, k); break;
    case EK_Q4_K: from_q4_or_q5(row, out, k, 0); break;
    case EK_Q5_K: from_q4_or_q5(row, out, k, 1); break;
    case EK_Q6_K: from_q6(row, out, k); break;
    }
}
