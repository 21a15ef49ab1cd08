/* SPDX-License-Identifier: Apache-2.0
 *
 * fp16 to float32 and back without the CPU's own instructions, in a form that compilers vectorise. Private.
 */
#ifndef ENGINE_HALF_H
#define ENGINE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t ek_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float ek_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Exact. The product by 2^112 moves the exponent and makes normal numbers of subnormal ones. */
static inline float ek_half_to_float(uint16_t half)
{
    uint32_t magnitude = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    uint32_t bits = ek_bits(ek_from_bits(magnitude << 13) * 0x1p112f);
    return ek_from_bits(bits | (magnitude >= 0x7c00u ? 0x7f800000u : 0u) | sign);
}

/* Nearest, ties to even; 65520 and more become infinity. Below 2^-14 the sum with 0.5 rounds to units of 2^-24. */
static inline uint16_t ek_float_to_half(float x)
{
    uint32_t bits = ek_bits(x), magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint32_t normal = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - 0x38000000u) >> 13;
    uint32_t small = ek_bits(ek_from_bits(magnitude < 0x38800000u ? magnitude : 0u) + 0.5f) - 0x3f000000u;
    uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    uint32_t half = magnitude >= 0x47800000u ? large : magnitude < 0x38800000u ? small : normal;
    return (uint16_t)(half | sign);
}

#endif
