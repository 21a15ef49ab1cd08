# SPDX-License-Identifier: Apache-2.0
"""Means with error bars. Tokens that follow each other are no independent draws, so bars are those of block means."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

BLOCK = 32
"""Consecutive tokens of one block."""

LEAST_BLOCKS = 4
_NORMAL = 1.959964

# Student's t at 97.5 %, for 1 to 30 degrees of freedom; beyond, the normal distribution is off by less than 4 %.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip


@dataclass(frozen=True)
class Estimate:
    """``value`` with the ends of its 95 % interval; None for both where too few tokens were seen for one."""

    value: float
    low: float | None
    high: float | None

    def as_json(self) -> dict[str, float | None]:
        return asdict(self)


def mean(values: F64, block: int = BLOCK) -> Estimate:
    """The mean and its interval from the scatter of block means (batch means; the last, shorter block joins in by its
    length).
    """
    value = float(values.mean())
    half = _half_width(values, block)
    return Estimate(value, None, None) if half is None else Estimate(value, value - half, value + half)


def exponential(values: F64, block: int = BLOCK) -> Estimate:
    """exp of the mean: the perplexity of a text from its surprises. The interval is that of the mean, carried over."""
    inside = mean(values, block)
    if inside.low is None or inside.high is None:
        return Estimate(_exp(inside.value), None, None)
    return Estimate(_exp(inside.value), _exp(inside.low), _exp(inside.high))


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))  # a float64 ends at exp(709)


def share(hits: int, total: int) -> Estimate:
    """A share with Wilson's interval, which stays within 0 and 1 and is right for few misses."""
    if total < 1:
        raise ValueError("a share of nothing has no value")
    p, z = hits / total, _NORMAL
    centre = (p + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(p * (1 - p) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    # The ends hold the share itself, whatever the last digit of the rounding says.
    return Estimate(p, min(p, max(0.0, centre - half)), max(p, min(1.0, centre + half)))


def _half_width(values: F64, block: int) -> float | None:
    n = len(values)
    blocks = n // block
    if blocks < LEAST_BLOCKS:
        return None
    cuts = np.array([round(i * n / blocks) for i in range(blocks + 1)])
    means = np.add.reduceat(values, cuts[:-1]) / np.diff(cuts)
    quantile = _STUDENT[blocks - 2] if blocks - 1 <= len(_STUDENT) else _NORMAL
    return float(quantile * means.std(ddof=1) / math.sqrt(blocks))
