# SPDX-License-Identifier: Apache-2.0
"""The quantiser of the NPU pipelines in exact integers. Shares no code with the engine.

What it says (rk-llama.cpp forks, rknpu2-quantization.cpp): scale = (clip * amax) / most, inverse = 1 / scale (0 for 0),
scaled = x * inverse, each of them one float32 operation; then roundf, half away from zero. Beyond int8 a clamp holds
(marfrit 447672d6) or a narrowing store wraps (invisiofficial, unimatrix099); int4 is held at +-7 after that.

A float32 operation on two float32 is made in float64 and rounded once more: float64 has more than twice the digits and
two, so the second rounding changes nothing. What is rounded to an integer is first made one: units of 2^-32.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I64 = NDArray[np.int64]

_UNIT_BITS = 32
_INT32_LEAST, _INT32_MOST = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Rules:
    """``most`` is 127 or 7; ``clamp`` off wraps. ``empty_scale`` is the scale of a row of zeros: 0 for activations,
    1 for weights.
    """

    most: int = 127
    clip: float = 1.0
    clamp: bool = True
    empty_scale: float = 0.0

    @property
    def words(self) -> str:
        kind = "int8" if self.most == 127 else "int4"
        return f"{kind}, {'clamped' if self.clamp else 'wrapping'}, clip {self.clip:g}"


def single(values: F64) -> F64:
    """Rounded to float32, kept as float64. Overflow is infinity."""
    with np.errstate(over="ignore"):
        return values.astype(np.float32).astype(np.float64)


def scales(x: F32, rules: Rules) -> F32:
    """Scale of each row of x [M, k]."""
    amax = np.abs(x.astype(np.float64)).max(axis=1, initial=0.0)
    clipped = single(float(np.float32(rules.clip)) * amax)
    found = single(clipped / rules.most)
    empty = amax == 0 if rules.empty_scale else np.zeros(len(amax), bool)
    return np.where(empty, rules.empty_scale, found).astype(np.float32)


def inverses(scale: F32) -> F64:
    """1 / scale as float32, 0 for 0, infinity where it is beyond float32 (scales below 2^-128)."""
    wide = scale.astype(np.float64)
    with np.errstate(divide="ignore"):
        return np.where(wide == 0, 0.0, single(1.0 / np.where(wide == 0, 1.0, wide)))


def scaled(x: F32, scale: F32) -> F64:
    """x [M, k] times the inverse of its row's scale, as float32 has it. 0 * infinity is NaN."""
    with np.errstate(invalid="ignore"):
        return single(x.astype(np.float64) * inverses(scale)[:, None])


def nearest(values: F64) -> I64:
    """roundf in integers: the nearest whole number, halves away from zero; NaN is 0, beyond int32 its ends.

    What lies below a unit of 2^-32 is cut off: it cannot lift anything to a half.
    """
    small = np.where(np.abs(values) < 2.0**30, values, 0.0)
    units = (np.abs(small) * 2.0**_UNIT_BITS).astype(np.int64)
    whole = (units + (1 << (_UNIT_BITS - 1))) >> _UNIT_BITS
    signed = np.where(small < 0, -whole, whole)
    large = np.abs(values) >= 2.0**30  # NaN is not
    if not large.any():
        return signed
    held = np.clip(np.where(large, values, 0.0), _INT32_LEAST, _INT32_MOST).astype(np.int64)
    return np.where(large, held, signed)


def narrowed(whole: I64, rules: Rules) -> NDArray[np.int8]:
    """Whole numbers as the pipeline stores them."""
    held = whole if rules.clamp else ((whole + 128) & 255) - 128
    if rules.clamp or rules.most == 7:
        held = np.minimum(np.maximum(held, -rules.most), rules.most)
    return held.astype(np.int8)


@dataclass(frozen=True)
class Answer:
    """``q`` int8 [M, k], ``scale`` float32 [M]; ``beyond`` elements that rounded beyond +-most."""

    q: NDArray[np.int8]
    scale: F32
    beyond: int


def quantised(x: F32, rules: Rules) -> Answer:
    """x [M, k], finite."""
    scale = scales(x, rules)
    whole = nearest(scaled(x, scale))
    return Answer(narrowed(whole, rules), scale, int(np.count_nonzero(np.abs(whole) > rules.most)))


def halves(x: F32) -> NDArray[np.float16]:
    """float32 as fp16: the nearest one, ties to even, from 65520 on infinity: whole numbers of the last place."""
    wide = x.astype(np.float64)
    size = np.abs(wide)
    exponent = np.frexp(np.maximum(size, 2.0**-14))[1] - 1  # subnormal numbers have the place of the least normal one
    place = np.ldexp(1.0, np.maximum(exponent, -14) - 10)
    steps = np.floor(size / place)
    rest = size / place - steps
    odd = steps % 2 == 1
    steps = steps + ((rest > 0.5) | ((rest == 0.5) & odd))
    rounded = steps * place
    result: NDArray[Any] = np.where(rounded >= 65536.0, np.inf, rounded)
    found: NDArray[np.float16] = np.copysign(result, wide).astype(np.float16)
    return found
