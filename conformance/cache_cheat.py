# SPDX-License-Identifier: Apache-2.0
"""Is a repeated prompt faster than distinct ones? Then a cache answers, and a speed measured so is none. Pure.

A benchmark that sends one prompt over and over measures the prompt cache of a server and not its prefill. A repeated
prompt whose median is more than 10 % below that of distinct ones is flagged, unless the scatter of the timings is so
wide that chance would do as much; then nothing is decided. Timings are taken in turns and judged in pairs too: a
machine with two speeds fools medians and their deviation, but not most pairs. Callers measure anew before they believe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

FASTER = 0.10
LEAST = 5
"""Timings of each kind, at least."""

_DEVIATIONS = 3.0
_MOST_PAIRS = 0.75
"""Of the pairs; where each timing is fast or slow by a coin, a quarter of them look like a cache."""

# Standard error of a median of n from their median absolute deviation, for a normal distribution.
_OF_MEDIAN = 1.4826 * 1.2533


@dataclass(frozen=True)
class Speeds:
    """Medians in the unit of the timings; ``error`` is the standard error of their difference.

    ``cheats`` None: the timings scatter too much to say.
    """

    distinct: float
    repeated: float
    error: float
    cheats: bool | None

    @property
    def faster(self) -> float:
        """Share of the time that a repeated prompt saves; negative where it is slower."""
        return 1.0 - self.repeated / self.distinct

    def sentence(self, unit: str = "s") -> str:
        """What was found, with both medians."""
        what = (
            f"a repeated prompt takes {self.repeated:.4g} {unit}, distinct ones {self.distinct:.4g} {unit} (medians; "
            f"standard error of the difference {self.error:.2g} {unit}): {abs(self.faster):.0%} "
            f"{'faster' if self.faster >= 0 else 'slower'}"
        )
        if self.cheats is None:
            return f"{what}, and the timings scatter too much to say whether a cache answers"
        return f"{what}; a cache answers a repeated prompt" if self.cheats else what


def compare_speeds(distinct: Sequence[float], repeated: Sequence[float]) -> Speeds:
    """Timings of distinct prompts of one length, and of one prompt repeated (without its first run), taken in turns.

    ValueError for fewer than ``LEAST`` of a kind, or for times that are not positive.
    """
    for name, values in (("distinct", distinct), ("repeated", repeated)):
        if len(values) < LEAST:
            raise ValueError(f"{len(values)} timings of {name} prompts; at least {LEAST} are needed")
        if not all(math.isfinite(value) and value > 0 for value in values):
            raise ValueError(f"the timings of {name} prompts are not all positive numbers")
    first, second = median(distinct), median(repeated)
    error = _OF_MEDIAN * math.hypot(*(_mad(v) / math.sqrt(len(v)) for v in (distinct, repeated)))
    limit = (1.0 - FASTER) * first
    margin = _DEVIATIONS * error
    if second + margin < limit:
        faster = [again < (1.0 - FASTER) * new for new, again in zip(distinct, repeated, strict=False)]
        return Speeds(first, second, error, True if sum(faster) >= _MOST_PAIRS * len(faster) else None)
    if second - margin > limit or second >= first:
        return Speeds(first, second, error, False)
    # Between: within the scatter of the limit. A clear case by the medians alone is still a case.
    close = second < limit or margin > FASTER * first
    return Speeds(first, second, error, None if close else False)


def _mad(values: Sequence[float]) -> float:
    middle = median(values)
    return float(median(abs(value - middle) for value in values))
