/* SPDX-License-Identifier: Apache-2.0
 *
 * Half floats, both ways, by the CPU's conversions where it has them and by integer operations elsewhere; to half is
 * rounded to the nearest, ties to even. Included by *_lanes.c only.
 */
#ifndef ENGINE_HALF_LANES_H
#define ENGINE_HALF_LANES_H

#include "math_lanes.h"

#if defined(__F16C__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

VF_INLINE float half_to_float(uint16_t half)
{
    uint32_t magnitude = (uint32_t)(half & 0x7FFF) << 13, sign = (uint32_t)(half & 0x8000) << 16, bits;
    float value;
    memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f; /* exact, and right for denormals */
    memcpy(&bits, &value, sizeof bits);
    if (magnitude >= 0x0F800000) /* infinity and NaN */
        bits = magnitude | 0x7F800000;
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

VF_INLINE uint16_t float_to_half(float x)
{
    uint32_t bits, sign, result;
    memcpy(&bits, &x, sizeof bits);
    sign = bits >> 16 & 0x8000;
    bits &= 0x7FFFFFFF;
    if (bits > 0x7F800000) {
        result = 0x7E00;
    } else if (bits >= 0x477FF000) { /* rounds to 65536 or is infinite */
        result = 0x7C00;
    } else if (bits < 0x38800000) { /* a denormal: the sum rounds it to a multiple of 2^-24 */
        float sum;
        memcpy(&sum, &bits, sizeof sum);
        sum += 0.5f;
        memcpy(&result, &sum, sizeof result);
        result -= 0x3F000000;
    } else {
        result = (bits + 0xFFF + (bits >> 13 & 1) - 0x38000000) >> 13;
    }
    return (uint16_t)(result | sign);
}

#if VF_LANES == 16
VF_INLINE vf half_load(const uint16_t *p) { return (vf)_mm512_cvtph_ps(_mm256_loadu_si256((const void *)p)); }
VF_INLINE void half_store(uint16_t *p, vf v)
{
    _mm256_storeu_si256((void *)p, _mm512_cvtps_ph((__m512)v, _MM_FROUND_TO_NEAREST_INT));
}
#elif VF_LANES == 8
VF_INLINE vf half_load(const uint16_t *p) { return (vf)_mm256_cvtph_ps(_mm_loadu_si128((const void *)p)); }
VF_INLINE void half_store(uint16_t *p, vf v)
{
    _mm_storeu_si128((void *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}
#elif defined(__aarch64__)
VF_INLINE vf half_load(const uint16_t *p) { return (vf)vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p))); }
VF_INLINE void half_store(uint16_t *p, vf v)
{
    vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32((float32x4_t)v)));
}
#else
VF_INLINE vf half_load(const uint16_t *p)
{
    vf v;
    for (int l = 0; l < VF_LANES; l++)
        v[l] = half_to_float(p[l]);
    return v;
}
VF_INLINE void half_store(uint16_t *p, vf v)
{
    for (int l = 0; l < VF_LANES; l++)
        p[l] = float_to_half(v[l]);
}
#endif

VF_INLINE void halves_to_floats(const uint16_t *x, float *out, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(out + i, half_load(x + i));
    for (; i < n; i++)
        out[i] = half_to_float(x[i]);
}

VF_INLINE void floats_to_halves(const float *x, uint16_t *out, size_t n)
{
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        half_store(out + i, vf_load(x + i));
    for (; i < n; i++)
        out[i] = float_to_half(x[i]);
}

#endif
