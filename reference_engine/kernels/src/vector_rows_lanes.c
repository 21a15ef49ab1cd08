/* SPDX-License-Identifier: Apache-2.0
 *
 * Rows that are summed, and pairs that are rotated. Sums of a row run in eight f64 lanes (lane l takes l, l + 8, ...)
 * and fold 8, 4, 2, 1.
 */
#include "levels.h"
#include "math_f64.h"
#include "math_lanes.h"
#include "vector_lanes.h"

static double fold(const double *lanes)
{
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

void EK_AT(ek_norm_row)(const float *x, const float *weight, float *out, size_t n, float eps)
{
    double lanes[8] = {0};
    size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (size_t l = 0; l < 8; l++)
            lanes[l] += (double)x[k + l] * (double)x[k + l];
    for (; k < n; k++)
        lanes[k % 8] += (double)x[k] * (double)x[k];
    float mean = (float)(fold(lanes) / (double)n);
    float factor = 1.0f / __builtin_sqrtf(mean + eps);
    if (weight)
        for (k = 0; k < n; k++)
            out[k] = x[k] * factor * weight[k];
    else
        for (k = 0; k < n; k++)
            out[k] = x[k] * factor;
}

void EK_AT(ek_softmax_row)(const float *x, float *out, size_t n)
{
    vf largest = vf_all(x[0]);
    size_t k = 0;
    for (; k + VF_LANES <= n; k += VF_LANES)
        largest = vf_max(vf_load(x + k), largest);
    float highest = x[0];
    for (size_t l = 0; l < VF_LANES; l++)
        highest = largest[l] > highest ? largest[l] : highest;
    for (; k < n; k++)
        highest = x[k] > highest ? x[k] : highest;
    double lanes[8] = {0};
    for (k = 0; k < n; k += 16) {
        float e[16] = {0};
        size_t part = n - k < 16 ? n - k : 16;
        memcpy(e, x + k, part * sizeof *x);
        for (size_t l = 0; l < 16; l += VF_LANES)
            vf_store(e + l, vf_exp(vf_load(e + l) - highest));
        for (size_t l = 0; l < part; l++)
            lanes[l % 8] += (double)e[l];
    }
    float logarithm = (float)math_log64(fold(lanes));
    for (k = 0; k < n; k++)
        out[k] = x[k] - highest - logarithm;
}

int EK_AT(ek_finite_row)(const float *x, size_t n)
{
    int32_t bad = 0;
    for (size_t k = 0; k < n; k++) {
        int32_t bits;
        memcpy(&bits, x + k, sizeof bits);
        bad |= (bits & 0x7F800000) == 0x7F800000;
    }
    return !bad;
}

void EK_AT(ek_rotate_pairs)(float *x, const float *cosines, const float *sines, size_t half)
{
    for (size_t i = 0; i < half; i++) {
        float a = x[2 * i], b = x[2 * i + 1];
        x[2 * i] = a * cosines[i] - b * sines[i];
        x[2 * i + 1] = a * sines[i] + b * cosines[i];
    }
}

void EK_AT(ek_rotate_halves)(float *restrict x, const float *restrict cosines, const float *restrict sines, size_t half)
{
    float *restrict y = x + half;
    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = y[i];
        x[i] = a * cosines[i] - b * sines[i];
        y[i] = a * sines[i] + b * cosines[i];
    }
}
