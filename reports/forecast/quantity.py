# SPDX-License-Identifier: Apache-2.0
"""A number that knows its interval, where it comes from, and what would be needed to know it.

Three states. Known: a value within ``low`` and ``high``. Known in part: ``omitted`` names parts that only add to it and
that nothing measured, so the value is a lower bound. Unknown: ``value`` is None and ``missing`` names the measurements
that would tell. Arithmetic keeps the state: an unknown factor makes an unknown product, never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from reports.contract import JsonValue

_LEAST = 1e-300
"""What one is not divided by."""

_TAIL = 0.1
"""Share of the samples that may lie outside of the interval at each end."""


@dataclass(frozen=True)
class Quantity:
    """All of ``value``, ``low`` and ``high`` are None, or none of them is; then low <= value <= high."""

    value: float | None
    low: float | None
    high: float | None
    sources: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    omitted: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return self.value is not None

    @property
    def bound(self) -> bool:
        """Whether the value is known in part only."""
        return bool(self.omitted) and self.known

    def __add__(self, other: Quantity) -> Quantity:
        if self.value is None or other.value is None:
            return _unknown_of(self, other)
        low, high = _ends(self), _ends(other)
        return _joined(self, other, self.value + other.value, low[0] + high[0], low[1] + high[1])

    def __mul__(self, other: Quantity | float) -> Quantity:
        right = other if isinstance(other, Quantity) else exact(other)
        if self.value is None or right.value is None:
            return _unknown_of(self, right)
        corners = [a * b for a in _ends(self) for b in _ends(right)]
        return _joined(self, right, self.value * right.value, min(corners), max(corners))

    def __truediv__(self, other: Quantity | float) -> Quantity:
        return self * (other if isinstance(other, Quantity) else exact(other)).inverse()

    def inverse(self) -> Quantity:
        """1 / x. Unknown where the interval reaches 0, for then nothing can be said."""
        if self.value is None:
            return self
        low, high = _ends(self)
        if low <= _LEAST:
            return unknown(*(f"{source} (its interval reaches 0)" for source in self.sources or ("a rate",)))
        return replace(self, value=1 / self.value, low=1 / high, high=1 / low)

    def plus_part(self, part: Quantity) -> Quantity:
        """The sum; where ``part`` is unknown, this alone, as a lower bound that names what is not in it."""
        if part.known:
            return self + part
        return replace(self, omitted=_once((*self.omitted, *part.missing)))

    def without(self, *names: str) -> Quantity:
        """The same, known in part: ``names`` are parts that nothing measured."""
        return replace(self, omitted=_once((*self.omitted, *names)))

    def as_json(self) -> dict[str, JsonValue]:
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "state": "unknown" if not self.known else "bound" if self.omitted else "estimate",
            "sources": list(self.sources),
            "missing": list(self.missing),
            "omitted": list(self.omitted),
        }


def exact(value: float) -> Quantity:
    """A number that is certain: a count, a size."""
    return Quantity(value, value, value)


ZERO = exact(0.0)
ONE = exact(1.0)


def unknown(*missing: str) -> Quantity:
    """A number that nothing told. ``missing`` names the measurements that would."""
    return Quantity(None, None, None, missing=_once(missing))


def sampled(value: float, samples: Sequence[float], source: str) -> Quantity:
    """A median with the interval that 80 % of its samples lie in; of fewer than ten samples, all of them."""
    if not math.isfinite(value):
        return unknown(f"{source} (out of range)")
    ordered = sorted(filter(math.isfinite, samples))
    low, high = (_quantile(ordered, _TAIL), _quantile(ordered, 1 - _TAIL)) if ordered else (value, value)
    return Quantity(value, min(low, value), max(high, value), (source,))


def span(quantities: Iterable[Quantity]) -> Quantity:
    """Of several readings of one number the median, with an interval that holds all of them. Unknown of none."""
    known = sorted((each for each in quantities if each.value is not None), key=lambda each: each.value or 0.0)
    if not known:
        return unknown("no reading")
    values = [each.value or 0.0 for each in known]
    middle = len(values) // 2
    value = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    lows, highs = zip(*(_ends(each) for each in known), strict=True)
    sources = _once(source for each in known for source in each.sources)
    return Quantity(value, min(lows), max(highs), sources, omitted=_once(o for each in known for o in each.omitted))


def total(parts: Iterable[Quantity]) -> Quantity:
    """The sum of ``parts``, 0 of none."""
    result = ZERO
    for part in parts:
        result = result + part
    return result


def larger(left: Quantity, right: Quantity) -> Quantity:
    """The larger of two, end by end; unknown where one of them is."""
    if left.value is None or right.value is None:
        return _unknown_of(left, right)
    ends = [max(pair) for pair in zip(_ends(left), _ends(right), strict=True)]
    return _joined(left, right, max(left.value, right.value), ends[0], ends[1])


def _ends(quantity: Quantity) -> tuple[float, float]:
    assert quantity.low is not None
    assert quantity.high is not None
    return quantity.low, quantity.high


def _quantile(ordered: Sequence[float], share: float) -> float:
    at = share * (len(ordered) - 1)
    if len(ordered) < 10:
        at = 0.0 if share < 0.5 else len(ordered) - 1.0
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def _joined(left: Quantity, right: Quantity, value: float, low: float, high: float) -> Quantity:
    if not all(map(math.isfinite, (value, low, high))):
        return unknown(*(f"{source} (out of range)" for source in (*left.sources, *right.sources)))
    sources, omitted = _once((*left.sources, *right.sources)), _once((*left.omitted, *right.omitted))
    return Quantity(value, low, high, sources, (), omitted)


def _unknown_of(*parts: Quantity) -> Quantity:
    return unknown(*(name for part in parts for name in part.missing))


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
