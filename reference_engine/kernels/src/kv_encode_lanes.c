/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows to codes and scales: f32, f16, and ggml's q8_0 and q4_0 with the rounding of its reference quantiser
 * (ggml-quants.c, quantize_row_q8_0_ref and quantize_row_q4_0_ref). What is no number is stored as code 0; the block's
 * scale then says so.
 */
#include "half_lanes.h"
#include "kv_lanes.h"
#include "levels.h"
#include "vector_lanes.h"

void EK_AT(ek_floats_to_halves)(const float *x, uint16_t *out, size_t n) { floats_to_halves(x, out, n); }
void EK_AT(ek_halves_to_floats)(const uint16_t *x, float *out, size_t n) { halves_to_floats(x, out, n); }

static void encode_q8_0(const float *x, int8_t *codes, uint16_t *scale, size_t stride)
{
    vf largest = {0};
    vi no_number = {0};
    for (size_t i = 0; i < KV_BLOCK; i += VF_LANES) {
        vf a = vf_abs(vf_load(x + i));
        largest = vf_max(a, largest);
        no_number |= a != a;
    }
    float most = 0.0f;
    int32_t lost = 0, rounded[KV_BLOCK];
    for (size_t l = 0; l < VF_LANES; l++) {
        most = largest[l] > most ? largest[l] : most;
        lost |= no_number[l];
    }
    float d = lost ? __builtin_nanf("") : most / 127.0f, inverse = d == 0.0f ? 0.0f : 1.0f / d;
    *scale = float_to_half(d);
    for (size_t i = 0; i < KV_BLOCK; i += VF_LANES) {
        vf scaled = vf_load(x + i) * inverse, a = vf_abs(scaled);
        a = vf_select(a < vf_all(127.5f), a, (vf){0}); /* the largest may come out a little over 127 */
        vi whole = __builtin_convertvector(a, vi), sign = scaled < (vf){0};
        whole -= a - __builtin_convertvector(whole, vf) >= vf_all(0.5f); /* roundf: halves away from zero */
        whole = (whole ^ sign) - sign;
        memcpy(rounded + i, &whole, sizeof whole);
    }
    for (size_t i = 0; i < KV_BLOCK; i++)
        codes[i * stride] = (int8_t)rounded[i];
}

static void encode_q4_0(const float *x, uint8_t *codes, uint16_t *scale, size_t stride)
{
    float largest = 0.0f, signed_largest = 0.0f;
    for (size_t i = 0; i < KV_BLOCK; i++) {
        float a = __builtin_fabsf(x[i]);
        if (a > largest) {
            largest = a;
            signed_largest = x[i];
        }
    }
    float d = signed_largest / -8.0f, inverse = d == 0.0f ? 0.0f : 1.0f / d;
    *scale = float_to_half(d);
    for (size_t i = 0; i < KV_BLOCK / 2; i++) {
        float low = x[i] * inverse + 8.5f, high = x[i + KV_BLOCK / 2] * inverse + 8.5f;
        unsigned a = low >= 0.0f ? low > 15.0f ? 15 : (unsigned)low : 0;
        unsigned b = high >= 0.0f ? high > 15.0f ? 15 : (unsigned)high : 0;
        codes[i * stride] = (uint8_t)(a | b << 4);
    }
}

void EK_AT(ek_kv_encode)(int type, const float *x, size_t n, void *codes, uint16_t *scales, size_t stride)
{
    uint16_t halves[KV_MAX_DIM];
    switch (type) {
    case EK_KV_F32:
        for (size_t i = 0; i < n; i++)
            ((float *)codes)[i * stride] = x[i];
        break;
    case EK_KV_F16:
        floats_to_halves(x, halves, n);
        for (size_t i = 0; i < n; i++)
            ((uint16_t *)codes)[i * stride] = halves[i];
        break;
    case EK_KV_Q8_0:
        for (size_t b = 0; b < n / KV_BLOCK; b++)
            encode_q8_0(x + b * KV_BLOCK, (int8_t *)codes + b * KV_BLOCK * stride, scales + b * stride, stride);
        break;
    default:
        for (size_t b = 0; b < n / KV_BLOCK; b++)
            encode_q4_0(x + b * KV_BLOCK, (uint8_t *)codes + b * KV_BLOCK / 2 * stride, scales + b * stride, stride);
    }
}

void EK_AT(ek_hadamard_rows)(float *x, size_t n, size_t block)
{
    float scale = 1.0f / __builtin_sqrtf((float)block);
    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
    for (size_t step = 1; step < block; step *= 2)
        for (size_t i = 0; i < n; i += 2 * step)
            for (size_t j = i; j < i + step; j++) {
                float a = x[j], b = x[j + step];
                x[j] = a + b;
                x[j + step] = a - b;
            }
}
