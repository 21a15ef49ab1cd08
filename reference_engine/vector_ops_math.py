# SPDX-License-Identifier: Apache-2.0
"""Elementary functions on arrays, from + - * / and integer bit operations: the same bits on every machine.

No function of a C library and no ``np.exp`` stands in here: those differ by library, version and CPU. The f32
functions run the very sequence of operations of ``kernels/src/math_f32.h``; each operation is rounded to f32.
The f64 functions (``math_f64.h``) serve angles and powers whose f32 error would grow with the position.
Denormals are kept, infinities and NaN go where the real function has them. NumPy may warn of overflow on the
way; callers hold ``np.errstate(all="ignore")``.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

F32: TypeAlias = "npt.NDArray[np.float32]"
F64: TypeAlias = "npt.NDArray[np.float64]"
Real: TypeAlias = "npt.NDArray[np.floating[Any]]"

f32 = np.float32

# A float whose unit in the last place is 1: adding it rounds to an integer, which then stands in the low bits.
ROUND_32 = f32(12582912.0)
ROUND_BITS_32 = np.int32(0x4B400000)
LOG2_E = f32(1.4426950408889634)
# ln 2 in two parts: the first has 10 bits, so that its product with any exponent is exact.
LN2_HIGH = f32(0.693359375)
LN2_LOW = f32(-2.12194440e-4)
EXP_LOWEST, EXP_HIGHEST = f32(-104.0), f32(89.0)  # below: 0, above: infinity
# Chebyshev fits of (e^r - 1 - r) / r^2 on |r| <= 0.3475 and of (tanh(sqrt z) / sqrt z - 1) / z on [0, 0.391],
# lowest power first.
EXP_POLYNOMIAL = tuple(
    map(f32, (0.5, 0.16666576266288757, 0.041666463017463684, 0.008363335393369198, 0.001393388374708593))
)
TANH_POLYNOMIAL = tuple(
    map(
        f32,
        (
            -0.3333333432674408,
            0.13333304226398468,
            -0.053959377110004425,
            0.02176971174776554,
            -0.008346161805093288,
            0.002294909907504916,
        ),
    )
)
TANH_SMALL = f32(0.625)


def _horner(z: Any, coefficients: tuple[Any, ...]) -> Any:
    value = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * z + coefficient
    return value


def exp(x: F32) -> F32:
    """e^x, at most 1 ulp off; exp(0) is 1, exp(-inf) is 0."""
    x = np.where(x < EXP_LOWEST, EXP_LOWEST, np.where(x > EXP_HIGHEST, EXP_HIGHEST, x))
    shifted = x * LOG2_E + ROUND_32
    n = shifted - ROUND_32
    high, low = x - n * LN2_HIGH, n * LN2_LOW
    r = high - low
    one_and_r = f32(1) + r
    # What the two roundings lost is small beside the rest and carried with it.
    lost = (r - (one_and_r - f32(1))) + ((high - r) - low)
    y = one_and_r + (lost + r * r * _horner(r, EXP_POLYNOMIAL))
    power = shifted.view(np.int32) - ROUND_BITS_32
    half = power >> np.int32(1)
    # Two factors: one power of two cannot reach the denormals or the last octave.
    result: F32 = y * _power_of_two(half) * _power_of_two(power - half)
    return result


def _power_of_two(n: npt.NDArray[np.int32]) -> F32:
    result: F32 = ((n + np.int32(127)) << np.int32(23)).view(np.float32)
    return result


def tanh(x: F32) -> F32:
    magnitude = np.abs(x)
    z = x * x
    small = magnitude + magnitude * (z * _horner(z, TANH_POLYNOMIAL))
    large = f32(1) - f32(2) / (exp(magnitude + magnitude) + f32(1))
    result: F32 = np.copysign(np.where(magnitude < TANH_SMALL, small, large), x)
    return result


def sigmoid(x: F32) -> F32:
    """1 / (1 + e^-x), without the overflow of e^-x at large negative x."""
    e = exp(-np.abs(x))
    negative = x < 0
    below = f32(1) + e
    lost = e - (below - f32(1))
    q = np.where(negative, e, f32(1)) / below
    # q * lost / below: 1 / below is 1 - q or q.
    result: F32 = q - q * (np.where(negative, f32(1) - q, q) * lost)
    return result


def silu(x: F32) -> F32:
    return x * sigmoid(x)


GELU_CUBE = f32(0.044715)
TWO_SQRT_2_OVER_PI = f32(2 * 0.7978845608028654)


def gelu(x: F32) -> F32:
    """The tanh form x/2 (1 + tanh u), u = sqrt(2/pi) (x + 0.044715 x^3), as x sigmoid(2 u): 1 + tanh u cancels."""
    return x * sigmoid(TWO_SQRT_2_OVER_PI * x * (f32(1) + GELU_CUBE * x * x))


def log(x: F32) -> F32:
    """The natural logarithm, through f64."""
    return log64(x.astype(np.float64)).astype(np.float32)


def softplus(x: F32) -> F32:
    """ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|)."""
    e = exp(-np.abs(x)).astype(np.float64)
    u = 1.0 + e
    correction = (e - (u - 1.0)) / u
    return np.where(x > 0, x, np.where(x <= 0, f32(0), x)) + (log64(u) + correction).astype(np.float32)


ROUND_64 = 6755399441055744.0
ROUND_BITS_64 = np.int64(0x4338000000000000)
LN2_HIGH_64 = 0.6931471803691238  # 33 bits
LN2_LOW_64 = 1.9082149292705877e-10
EXP_TAYLOR = tuple(
    1.0 / n for n in (1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800)
)
SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)
LOG_SERIES = tuple(1.0 / n for n in (1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21))
# pi/2 in three parts: 33 bits, the next 33, the rest.
HALF_PI = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
TWO_OVER_PI = 0.6366197723675814
SIN_TAYLOR = tuple(
    sign / n
    for sign, n in (
        (1.0, 1),
        (-1.0, 6),
        (1.0, 120),
        (-1.0, 5040),
        (1.0, 362880),
        (-1.0, 39916800),
        (1.0, 6227020800),
        (-1.0, 1307674368000),
        (1.0, 355687428096000),
    )
)
COS_TAYLOR = tuple(
    sign / n
    for sign, n in (
        (1.0, 1),
        (-1.0, 2),
        (1.0, 24),
        (-1.0, 720),
        (1.0, 40320),
        (-1.0, 3628800),
        (1.0, 479001600),
        (-1.0, 87178291200),
        (1.0, 20922789888000),
    )
)


def exp64(x: F64) -> F64:
    """e^x in f64 for |x| < 700, a few ulp off."""
    shifted = x * 1.4426950408889634 + ROUND_64
    n = shifted - ROUND_64
    r = (x - n * LN2_HIGH_64) - n * LN2_LOW_64
    power = shifted.view(np.int64) - ROUND_BITS_64
    scale = ((power + np.int64(1023)) << np.int64(52)).view(np.float64)
    value: F64 = _horner(r, EXP_TAYLOR) * scale
    return value


def log64(x: F64) -> F64:
    """The natural logarithm of a normal f64, a few ulp off; -inf at 0, NaN below, infinity and NaN themselves."""
    bits = x.view(np.int64)
    # The exponent that leaves a mantissa in [sqrt 1/2, sqrt 2).
    power = (bits - SQRT_HALF_BITS) >> np.int64(52)
    m = (bits - (power << np.int64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    n = power.astype(np.float64)
    series = s * z * _horner(z, LOG_SERIES[1:])
    value = n * LN2_HIGH_64 + ((n * LN2_LOW_64 + 2.0 * series) + 2.0 * s)
    value = np.where(x == 0, -np.inf, np.where(x < 0, np.nan, value))
    return np.where(x < np.inf, value, x)


@cache
def pow32(base: float, exponent: float) -> np.float32:
    """base ** exponent for a positive base, computed in f64 and rounded once to f32."""
    logarithm = log64(np.array([base], np.float64))
    result: np.float32 = np.float32(exp64(logarithm * exponent).astype(np.float32)[0])
    return result


def sin_cos(x: F32) -> tuple[F32, F32]:
    """Sine and cosine of angles up to 1e7 rad, reduced in f64 and rounded once to f32; NaN at infinity."""
    angle = x.astype(np.float64)
    shifted = angle * TWO_OVER_PI + ROUND_64
    n = shifted - ROUND_64
    r = ((angle - n * HALF_PI[0]) - n * HALF_PI[1]) - n * HALF_PI[2]
    z = r * r
    sine = (r * _horner(z, SIN_TAYLOR)).astype(np.float32)
    cosine = _horner(z, COS_TAYLOR).astype(np.float32)
    quadrant = (shifted.view(np.int64) - ROUND_BITS_64) & np.int64(3)
    odd = (quadrant & np.int64(1)) == 1
    sin_value = np.where(odd, cosine, sine)
    cos_value = np.where(odd, sine, cosine)
    sin_value = np.where(quadrant >= 2, -sin_value, sin_value)
    cos_value = np.where((quadrant == 1) | (quadrant == 2), -cos_value, cos_value)
    return sin_value, cos_value
