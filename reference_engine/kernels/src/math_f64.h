/* SPDX-License-Identifier: Apache-2.0
 *
 * Elementary functions in f64, one value at a time: the sequence of operations of reference_engine/vector_ops_math.py.
 */
#ifndef ENGINE_MATH_F64_H
#define ENGINE_MATH_F64_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MATH_INLINE static inline __attribute__((unused))
#define MATH_ROUND 6755399441055744.0 /* 1.5 * 2^52 */
#define MATH_ROUND_BITS INT64_C(0x4338000000000000)

MATH_INLINE int64_t math_bits(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

MATH_INLINE double math_double(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

MATH_INLINE double math_horner(double z, const double *coefficients, size_t n)
{
    double value = coefficients[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        value = value * z + coefficients[i];
    return value;
}

MATH_INLINE double math_exp64(double x)
{
    static const double taylor[] = {1.0 / 1, 1.0 / 1, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                                    1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600,
                                    1.0 / 6227020800};
    double shifted = x * 1.4426950408889634 + MATH_ROUND;
    double n = shifted - MATH_ROUND;
    double r = (x - n * 0.6931471803691238) - n * 1.9082149292705877e-10;
    int64_t power = math_bits(shifted) - MATH_ROUND_BITS;
    return math_horner(r, taylor, 14) * math_double((uint64_t)(power + 1023) << 52);
}

MATH_INLINE double math_log64(double x)
{
    static const double series[] = {1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                    1.0 / 19, 1.0 / 21};
    if (x == 0)
        return -__builtin_inf();
    if (x < 0)
        return __builtin_nan("");
    if (!(x < __builtin_inf()))
        return x;
    int64_t bits = math_bits(x);
    int64_t power = (bits - INT64_C(0x3FE6A09E667F3BCD)) >> 52;
    double m = math_double((uint64_t)bits - ((uint64_t)power << 52));
    double s = (m - 1.0) / (m + 1.0);
    double z = s * s, n = (double)power;
    double rest = s * z * math_horner(z, series, 10);
    return n * 0.6931471803691238 + ((n * 1.9082149292705877e-10 + 2.0 * rest) + 2.0 * s);
}

/* base ** exponent for a positive base, rounded once to f32. */
MATH_INLINE float math_pow32(double base, double exponent)
{
    return (float)math_exp64(math_log64(base) * exponent);
}

/* Sine and cosine of an angle up to 1e7 rad, each rounded once to f32. */
MATH_INLINE void math_sin_cos(float x, float *sine, float *cosine)
{
    static const double sin_taylor[] = {1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800,
                                        1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    static const double cos_taylor[] = {1.0, -1.0 / 2, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                                        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    double angle = x;
    double shifted = angle * 0.6366197723675814 + MATH_ROUND;
    double n = shifted - MATH_ROUND;
    double r = ((angle - n * 1.5707963267341256) - n * 6.077100506303966e-11) - n * 2.0222662487959506e-21;
    double z = r * r;
    float s = (float)(r * math_horner(z, sin_taylor, 9));
    float c = (float)math_horner(z, cos_taylor, 9);
    uint64_t quadrant = (uint64_t)(math_bits(shifted) - MATH_ROUND_BITS) & 3;
    float at_sine = quadrant & 1 ? c : s, at_cosine = quadrant & 1 ? s : c;
    *sine = quadrant >= 2 ? -at_sine : at_sine;
    *cosine = quadrant == 1 || quadrant == 2 ? -at_cosine : at_cosine;
}

#endif
