# SPDX-License-Identifier: Apache-2.0
"""The roundings of the NPU pipelines in numpy, element by element, exact in every case."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

_MAX_INT32 = float(np.iinfo(np.int32).max)
_MIN_INT32 = float(np.iinfo(np.int32).min)


def round_half_away(x: F32) -> NDArray[np.float64]:
    """roundf: the nearest integer, halves away from zero. In float64, because 0.49999997 + 0.5 is 1 in float32."""
    wide = x.astype(np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide)


def to_int32_saturating(rounded: NDArray[np.float64]) -> NDArray[np.int32]:
    """As fcvtas on aarch64 converts: beyond int32 to its ends, NaN to 0."""
    held = np.nan_to_num(rounded, nan=0.0, posinf=_MAX_INT32, neginf=_MIN_INT32)
    return np.clip(held, _MIN_INT32, _MAX_INT32).astype(np.int32)


def fused_multiply_add(a: F32, b: F32, c: F32) -> F32:
    """a * b + c in float32 with one rounding, arrays broadcast.

    The product of two float32 is exact in float64. The sum is rounded to odd there, after which the rounding to float32
    is that of the exact value, because float64 has more than twice the digits and two.
    """
    product = a.astype(np.float64) * b.astype(np.float64)
    wide = c.astype(np.float64)
    total = product + wide
    part = total - product  # the error of the sum, exactly (Knuth)
    error = (product - (total - part)) + (wide - part)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & ((bits & 1) == 0)
    toward_zero = (error < 0) == (total > 0)
    odd = np.where(inexact, np.where(toward_zero, bits - 1, bits + 1), bits)
    with np.errstate(over="ignore"):
        return odd.view(np.float64).astype(np.float32)
