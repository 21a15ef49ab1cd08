/* SPDX-License-Identifier: Apache-2.0
 *
 * Vectors of the level's own width and elementary functions on them: the sequence of operations of
 * reference_engine/vector_ops_math.py, in f32, from + - * / and bit operations. Every lane is on its own, so the width
 * changes no bit. Included by *_lanes.c only.
 */
#ifndef ENGINE_MATH_LANES_H
#define ENGINE_MATH_LANES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__)
#define VF_LANES 16
#elif defined(__AVX2__)
#define VF_LANES 8
#else
#define VF_LANES 4
#endif
#define VF_INLINE static inline __attribute__((always_inline, unused))

typedef float vf __attribute__((vector_size(4 * VF_LANES)));
typedef int32_t vi __attribute__((vector_size(4 * VF_LANES)));
typedef float vf_unaligned __attribute__((vector_size(4 * VF_LANES), aligned(4), may_alias));

VF_INLINE vf vf_load(const float *p) { return *(const vf_unaligned *)p; }
VF_INLINE void vf_store(float *p, vf v) { *(vf_unaligned *)p = v; }
/* s - (+0) is s, the sign of a zero included. */
VF_INLINE vf vf_all(float s) { return s - (vf){0}; }
VF_INLINE vf vf_select(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }
VF_INLINE vf vf_abs(vf x) { return (vf)((vi)x & 0x7FFFFFFF); }
VF_INLINE vf vf_negative_abs(vf x) { return (vf)((vi)x | INT32_MIN); }
VF_INLINE vf vf_max(vf a, vf b) { return vf_select(a > b, a, b); }

VF_INLINE vf vf_power_of_two(vi n) { return (vf)((n + 127) << 23); }

/* e^x: 0 below -104, infinity above 89, and x = n ln 2 + r between. */
VF_INLINE vf vf_exp(vf x)
{
    x = vf_select(x < vf_all(-104.0f), vf_all(-104.0f), vf_select(x > vf_all(89.0f), vf_all(89.0f), x));
    vf shifted = x * 0x1.715476p+0f + 12582912.0f;
    vf n = shifted - 12582912.0f;
    vf high = x - n * 0.693359375f, low = n * -2.12194440e-4f;
    vf r = high - low;
    vf one_and_r = 1.0f + r;
    vf lost = (r - (one_and_r - 1.0f)) + ((high - r) - low);
    vf p = 0.001393388374708593f * r + 0.008363335393369198f;
    p = p * r + 0.041666463017463684f;
    p = p * r + 0.16666576266288757f;
    p = p * r + 0.5f;
    vf y = one_and_r + (lost + r * r * p);
    vi power = (vi)shifted - 0x4B400000;
    vi half = power >> 1;
    return y * vf_power_of_two(half) * vf_power_of_two(power - half);
}

VF_INLINE vf vf_tanh(vf x)
{
    vf a = vf_abs(x), z = x * x;
    vf p = 0.002294909907504916f * z + -0.008346161805093288f;
    p = p * z + 0.02176971174776554f;
    p = p * z + -0.053959377110004425f;
    p = p * z + 0.13333304226398468f;
    p = p * z + -0.3333333432674408f;
    vf small = a + a * (z * p);
    vf large = 1.0f - 2.0f / (vf_exp(a + a) + 1.0f);
    vf y = vf_select(a < vf_all(0.625f), small, large);
    return (vf)(((vi)y & 0x7FFFFFFF) | ((vi)x & INT32_MIN));
}

VF_INLINE vf vf_sigmoid(vf x)
{
    vf e = vf_exp(vf_negative_abs(x));
    vi negative = x < (vf){0};
    vf below = 1.0f + e;
    vf lost = e - (below - 1.0f);
    vf q = vf_select(negative, e, vf_all(1.0f)) / below;
    return q - q * (vf_select(negative, 1.0f - q, q) * lost);
}

VF_INLINE vf vf_silu(vf x) { return x * vf_sigmoid(x); }

VF_INLINE vf vf_gelu(vf x)
{
    return x * vf_sigmoid(1.5957691216057308f * x * (1.0f + 0.044715f * x * x));
}

#endif
