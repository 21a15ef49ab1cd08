# SPDX-License-Identifier: Apache-2.0
"""How far two sets of samples are apart, and how sure that is.

The interval of a ratio of medians: each side is resampled in blocks of neighbours (samples of one row follow each other
and are not independent), the spread of the resampled medians' logarithms gives the standard error, and Student's t at
the level asked for gives the width. A bootstrap percentile alone would be too narrow for the levels that many rows at
once need: the median of three samples has only three values to take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

RESAMPLES = 400
FEWEST = 3
"""Samples that a side must have."""


@dataclass(frozen=True)
class Ratio:
    """``value`` is the median after over the median before; the interval is simultaneous for all rows judged."""

    value: float
    low: float
    high: float


def ratio_of_medians(before: Sequence[float], after: Sequence[float], level: float, seed: int) -> Ratio | None:
    """The ratio with its two-sided interval at ``level`` (0.95), or None where it cannot be had.

    Both sides need FEWEST positive samples. The same input gives the same interval.
    """
    if min(len(before), len(after)) < FEWEST or min(*before, *after) <= 0:
        return None
    import numpy as np  # noqa: PLC0415  a page of a report without measurements does without

    random = np.random.default_rng(seed)
    errors = [_log_median_error(np.asarray(side, dtype=np.float64), random) for side in (before, after)]
    center = math.log(float(np.median(after)) / float(np.median(before)))
    error = math.hypot(*errors)
    width = error * student_t(0.5 + level / 2, _freedom(errors, (len(before), len(after)))) if error > 0 else 0.0
    width = min(width, 50.0)
    return Ratio(math.exp(center), math.exp(center - width), math.exp(center + width))


def _log_median_error(samples: Any, random: Any) -> float:
    import numpy as np  # noqa: PLC0415

    count = len(samples)
    block = max(1, round(count ** (1 / 3)))
    blocks = -(-count // block)
    starts = random.integers(0, count, size=(RESAMPLES, blocks, 1))
    picked = (starts + np.arange(block)).reshape(RESAMPLES, -1)[:, :count] % count
    low, high = np.percentile(np.log(np.median(samples[picked], axis=1)), (5, 95))
    return float(high - low) / (2 * 1.645) * math.sqrt(count / (count - block))  # few blocks spread too little


def _freedom(errors: Sequence[float], counts: Sequence[int]) -> float:
    """Degrees of freedom of the two errors together (Welch, Satterthwaite), down to a tenth: the quantile is cached."""
    total = sum(error**2 for error in errors) ** 2
    parts = sum(error**4 / (count - 1) for error, count in zip(errors, counts, strict=True))
    return math.floor(10 * total / parts) / 10 if parts > 0 else float(min(counts) - 1)


@lru_cache(maxsize=4096)
def student_t(probability: float, freedom: float) -> float:
    """The quantile of Student's distribution for ``probability`` > 0.5, by bisection of its distribution."""
    low, high = 0.0, 1.0
    while _student_cdf(high, freedom) < probability and high < 1e12:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _student_cdf(middle, freedom) < probability else (low, middle)
    return high


def _student_cdf(t: float, freedom: float) -> float:
    return 1 - 0.5 * _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (DLMF 8.17.22, evaluated after Lentz)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1 / max(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 400):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or tiny)
            c = 1 + numerator / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction / a
