/* SPDX-License-Identifier: Apache-2.0
 *
 * Tables of the rotary embedding; the formula is stated in reference_engine/rope.py.
 */
#include "math_f64.h"
#include "vector.h"

void ek_rope_tables(const int64_t *positions, size_t rows, size_t half, float step, float freq_scale,
                    const float *factors, const float *mix, float amplitude, float *cosines, float *sines)
{
    for (size_t row = 0; row < rows; row++) {
        float angle = (float)positions[row];
        for (size_t i = 0; i < half; i++, angle *= step) {
            float full = factors ? angle / factors[i] : angle;
            float scaled = freq_scale * full;
            if (mix)
                scaled = scaled * (1.0f - mix[i]) + full * mix[i];
            float sine, cosine;
            math_sin_cos(scaled, &sine, &cosine);
            cosines[row * half + i] = cosine * amplitude;
            sines[row * half + i] = sine * amplitude;
        }
    }
}
