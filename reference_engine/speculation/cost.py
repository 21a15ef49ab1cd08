# SPDX-License-Identifier: Apache-2.0
"""What speculation costs and brings: tokens per second from acceptance, draft cost, verify cost and overhead. Pure.

A round drafts n tokens, verifies them in one pass of n + 1 rows, and keeps the accepted ones and one more::

    tokens per second = (1 + accepted(n)) / (overhead + n draft + verify(n + 1))

A strategy that finds a draft in a share c of its rounds only (n-gram) mixes such rounds with plain ones.

Held against the published campaign on RK3588 (marfrit/rk-llama.cpp, docs/rknpu2-campaign-results.md, gemma-4-12b) with
verify(b) = one decode step + (the next power of two of b, less 1) / 38.13 s, its prefill rate; an MTP draft token is
444 MB at the 25.6 GB/s that four CPU threads read. Fitted: one overhead for MTP (0.121 s, the mean over n-max 2 and 4);
overhead and draft cost of the E2B draft on the A55 (0.621 s and 0.116 s, from n-max 4 and 8); for each n-gram strategy
the share of rounds with a draft, from one of two prompts. Errors of the rows that were not fitted, each MTP row without
itself: MTP n-max 2 -4 %, n-max 4 +3 %, file echo +7 % and +2 %, live service -2 %; E2B n-max 6 +8 % (one cold sample),
by prompt +6, +4 and -10 %, mean 0 %; of the two prompts, each from the other, ngram-simple +1 and -2 %, ngram-cache +3
and +8 %, ngram-mod +10 % and untold, where the campaign lost 4 % and no share of rounds explains it
(tests/forecast/test_speculation_cost.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol


class Acceptance(Protocol):
    """How many of ``n`` drafted tokens are right on average."""

    def accepted(self, n: int) -> float: ...


@dataclass(frozen=True)
class Geometric:
    """Each token is right with probability ``p``, given that those before it were."""

    p: float

    def __post_init__(self) -> None:
        _share("p", self.p)

    def accepted(self, n: int) -> float:
        return float(n) if self.p == 1 else self.p * (1 - self.p**n) / (1 - self.p)


@dataclass(frozen=True)
class PerPosition:
    """``rates[i]``: share of rounds in which the token at position i was right (and so all before it were).

    These are the figures of :class:`~reference_engine.speculation.statistics.Statistics` and of llama.cpp's ``acc per
    pos``. Beyond the last position nothing is accepted.
    """

    rates: tuple[float, ...]

    def __post_init__(self) -> None:
        for rate in self.rates:
            _share("a rate", rate)

    def accepted(self, n: int) -> float:
        return sum(self.rates[:n])


@dataclass(frozen=True)
class Average:
    """``rate``: right tokens of all drafted, as llama.cpp's ``draft acceptance``. It holds for the length it is of."""

    rate: float

    def __post_init__(self) -> None:
        _share("rate", self.rate)

    def accepted(self, n: int) -> float:
        return self.rate * n


def geometric_of(average: float, n: int) -> Geometric:
    """The geometric acceptance that gives ``average`` over drafts of ``n`` tokens. ValueError outside of 0 to 1."""
    _share("average", average)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if Geometric(middle).accepted(n) < average * n else (low, middle)
    return Geometric((low + high) / 2)


@dataclass(frozen=True)
class Costs:
    """Seconds: ``decode`` a plain step, ``verify(b)`` a pass of b rows, ``draft`` one drafted token.

    ``overhead``: whatever else a round with a draft takes.
    """

    decode: float
    verify: Callable[[int], float]
    draft: float = 0.0
    overhead: float = 0.0

    def __post_init__(self) -> None:
        if self.decode <= 0 or self.draft < 0:
            raise ValueError(f"a decode step takes time and a draft does not give any: {self.decode}, {self.draft}")

    def round(self, n: int) -> float:
        """Seconds of a round with a draft of ``n`` tokens; of none, a plain step."""
        if n < 0:
            raise ValueError(f"a draft of {n} tokens")
        return self.decode if n == 0 else self.overhead + n * self.draft + self.verify(n + 1)


def tokens_per_second(costs: Costs, acceptance: Acceptance, n: int, *, coverage: float = 1.0) -> float:
    """Rate with drafts of ``n`` tokens in a share ``coverage`` of the rounds and plain steps in the others."""
    _share("coverage", coverage)
    tokens = 1 + coverage * acceptance.accepted(n)
    return tokens / (coverage * costs.round(n) + (1 - coverage) * costs.decode)


def speed_up(costs: Costs, acceptance: Acceptance, n: int, *, coverage: float = 1.0) -> float:
    """Times the rate of plain decoding."""
    return tokens_per_second(costs, acceptance, n, coverage=coverage) * costs.decode


def break_even(costs: Costs, n: int) -> float | None:
    """The average acceptance at which drafts of ``n`` tokens neither win nor lose; None where none can win.

    It does not depend on how many rounds have a draft. 0 where a round is no dearer than a plain step.
    """
    if n < 1:
        raise ValueError("a break-even needs a draft of at least one token")
    rate = (costs.round(n) / costs.decode - 1) / n
    return None if rate > 1 else max(0.0, rate)


def best_length(costs: Costs, acceptance: Acceptance, n_max: int) -> tuple[int, float]:
    """(length, tokens per second) of the best draft length from 0 to ``n_max``; the shortest of equals."""
    rates = [(tokens_per_second(costs, acceptance, n), -n) for n in range(n_max + 1)]
    rate, negative = max(rates)
    return -negative, rate


def fit_overhead(costs: Costs, acceptance: Acceptance, n: int, rate: float) -> Costs:
    """``costs`` with the overhead that gives ``rate`` tokens per second; may be negative where they are too dear."""
    seconds = (1 + acceptance.accepted(n)) / rate
    return replace(costs, overhead=seconds - replace(costs, overhead=0.0).round(n))


def fit_draft(costs: Costs, points: Sequence[tuple[Acceptance, int, float]]) -> Costs:
    """``costs`` with overhead and draft cost from two or more (acceptance, n, tokens per second), least squares."""
    bare = replace(costs, overhead=0.0, draft=0.0)
    rows = [(n, (1 + acceptance.accepted(n)) / rate - bare.round(n)) for acceptance, n, rate in points]
    mean_n = sum(n for n, _ in rows) / len(rows)
    mean_s = sum(s for _, s in rows) / len(rows)
    spread = sum((n - mean_n) ** 2 for n, _ in rows)
    if spread == 0:
        raise ValueError("two draft lengths are needed to tell draft cost and overhead apart")
    draft = sum((n - mean_n) * (s - mean_s) for n, s in rows) / spread
    return replace(costs, draft=draft, overhead=mean_s - draft * mean_n)


def fit_coverage(costs: Costs, acceptance: Acceptance, n: int, rate: float) -> float | None:
    """The share of rounds with a draft that gives ``rate``; None where no share from 0 to 1 does."""
    # (1 + c a) = rate (decode + c (round - decode)), linear in c.
    gain = acceptance.accepted(n) - rate * (costs.round(n) - costs.decode)
    needed = rate * costs.decode - 1
    if gain == 0:
        return None
    share = needed / gain
    return share if 0 <= share <= 1 else None


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(f"{name} is {value}; it lies between 0 and 1")
