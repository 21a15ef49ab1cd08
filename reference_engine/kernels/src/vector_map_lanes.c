/* SPDX-License-Identifier: Apache-2.0
 *
 * Element by element. The last values of a row that fill no vector go through the same code in a padded one.
 */
#include "levels.h"
#include "math_f64.h"
#include "math_lanes.h"
#include "vector.h"
#include "vector_lanes.h"

VF_INLINE vf apply(int operation, vf x, vf y, float s, float inverse)
{
    switch (operation) {
    case EK_EXP: return vf_exp(x);
    case EK_TANH: return vf_tanh(x);
    case EK_SIGMOID: return vf_sigmoid(x);
    case EK_SILU: return vf_silu(x);
    case EK_GELU: return vf_gelu(x);
    case EK_SCALE: return x * s;
    case EK_SOFTCAP: return vf_tanh(x * inverse) * s;
    case EK_ADD: return x + y;
    case EK_MUL: return x * y;
    case EK_SILU_MUL: return vf_silu(x) * y;
    default: return vf_gelu(x) * y;
    }
}

VF_INLINE void run(int operation, const float *x, const float *y, float *out, size_t n, float s)
{
    float inverse = operation == EK_SOFTCAP ? 1.0f / s : 0.0f;
    size_t i = 0;
    for (; i + VF_LANES <= n; i += VF_LANES)
        vf_store(out + i, apply(operation, vf_load(x + i), operation >= EK_ADD ? vf_load(y + i) : (vf){0}, s, inverse));
    if (i < n) {
        vf a = {0}, b = {0};
        memcpy(&a, x + i, (n - i) * sizeof *x);
        if (operation >= EK_ADD)
            memcpy(&b, y + i, (n - i) * sizeof *y);
        a = apply(operation, a, b, s, inverse);
        memcpy(out + i, &a, (n - i) * sizeof *x);
    }
}

static void softplus(const float *x, float *out, size_t n)
{
    for (size_t i = 0; i < n; i += VF_LANES) {
        vf a = {0};
        float rows[VF_LANES];
        size_t part = n - i < VF_LANES ? n - i : VF_LANES;
        memcpy(&a, x + i, part * sizeof *x);
        vf e = vf_exp(vf_negative_abs(a));
        memcpy(rows, &e, sizeof rows);
        for (size_t lane = 0; lane < part; lane++) {
            double u = 1.0 + (double)rows[lane];
            double correction = ((double)rows[lane] - (u - 1.0)) / u;
            float value = x[i + lane], above = value > 0 ? value : value <= 0 ? 0.0f : value;
            out[i + lane] = above + (float)(math_log64(u) + correction);
        }
    }
}

/* ggml-cpu/vec.h: 0 at -10 and below, x at 10 and above, the table of half floats between. */
static void gelu_by_table(const float *x, const float *y, float *out, size_t n)
{
    extern ek_to_halves EK_AT(ek_floats_to_halves);
    const float *table = vector_gelu_table();
    uint16_t halves[64];
    for (size_t i = 0; i < n; i += 64) {
        size_t part = n - i < 64 ? n - i : 64;
        EK_AT(ek_floats_to_halves)(x + i, halves, part);
        for (size_t k = 0; k < part; k++) {
            float value = x[i + k];
            value = value <= -10.0f ? 0.0f : value >= 10.0f ? value : table[halves[k]];
            out[i + k] = y ? value * y[i + k] : value;
        }
    }
}

void EK_AT(ek_map_row)(int operation, const float *x, const float *y, float *out, size_t n, float s)
{
#define CASE(name) \
    case name: \
        run(name, x, y, out, n, s); \
        break;
    switch (operation) {
        CASE(EK_EXP) CASE(EK_TANH) CASE(EK_SIGMOID) CASE(EK_SILU) CASE(EK_GELU) CASE(EK_SCALE) CASE(EK_SOFTCAP)
        CASE(EK_ADD) CASE(EK_MUL) CASE(EK_SILU_MUL) CASE(EK_GELU_MUL)
    case EK_SOFTPLUS:
        softplus(x, out, n);
        break;
    case EK_GELU_TABLE:
        gelu_by_table(x, NULL, out, n);
        break;
    case EK_GELU_TABLE_MUL:
        gelu_by_table(x, y, out, n);
        break;
    default:
        break;
    }
#undef CASE
}
