# SPDX-License-Identifier: Apache-2.0
"""The first token in which two greedy runs differ, how far apart the two tokens were in each path, and what that means.

Measured on llama.cpp b11434 (CPU, gemma3-270m Q4_K_M, SmolLM2-135M Q4_1): on quantised weights speculation changes
tokens because the batch shape changes sums; at one such place the two tokens were 0.48 nats apart in the path that
decodes one by one and 0.05 in the path that reads the whole prefix at once. On F32 weights with F32 KV all 18
speculative runs were the same as greedy, token for token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from conformance.server.replies import Row
from reports.text import inert

NEAR_NATS = 0.1
"""Two tokens this close are one rounding apart in any quantised pipeline."""

FAR_NATS = 3.0
"""No correct pipeline turns such a margin; the trap models are built with it."""

CLEAR_NATS, TIMES_NOISE = 1.0, 10.0
"""Nor one of a nat and more that is ten times what reading the prefix at once changes in the same row."""

NEAR_TIE = "near tie"
UNCLEAR = "within the reach of quantisation"
RULED_OUT = "ruled out by the probabilities"
NOT_CLASSED = "not classed"


@dataclass(frozen=True)
class Path:
    """One way to the row of the first differing token. ``gap``: nats that greedy's token stands above speculation's.

    A gap below zero: this path takes speculation's token. ``at_least``: speculation's token is not among those listed,
    so the gap is larger than ``gap``.
    """

    name: str
    gap: float
    at_least: bool = False

    def sentence(self) -> str:
        return f"{'more than ' if self.at_least else ''}{self.gap:.2f} nats in the {self.name}"


@dataclass(frozen=True)
class Difference:
    """``index`` counts generated tokens from 0. ``noise``: nats by which the two plain paths differ here, or None.

    ``words``: what the two runs are called in the sentence.
    """

    index: int
    greedy: int | str | None
    speculative: int | str | None
    paths: tuple[Path, ...]
    noise: float | None
    words: tuple[str, str] = ("without speculation", "with it")

    @property
    def kind(self) -> str:
        """One of the four classes."""
        if not self.paths or self.greedy is None or self.speculative is None:
            return NOT_CLASSED
        gap = min(path.gap for path in self.paths)
        if gap <= max(NEAR_NATS, 0.0 if self.noise is None else min(2 * self.noise, 1.0)):
            return NEAR_TIE
        far = FAR_NATS if self.noise is None else min(FAR_NATS, max(CLEAR_NATS, TIMES_NOISE * self.noise))
        return RULED_OUT if gap >= far else UNCLEAR

    def sentence(self) -> str:
        """Position, tokens, gap in each path, class."""
        one, other = self.words
        what = f"token {self.index} is {_shown(self.greedy)} {one} and {_shown(self.speculative)} {other}"
        if not self.paths:
            return f"{what}; no log-probabilities are given, so the difference is {NOT_CLASSED}"
        apart = ", ".join(path.sentence() for path in self.paths)
        noise = "" if self.noise is None else f"; the plain paths differ by {self.noise:.2f} there"
        return f"{what}; the former is ahead by {apart}{noise}: {self.kind}"


def first_difference(one: Sequence[object], other: Sequence[object]) -> int | None:
    """Index of the first place in which they differ, or at which one of them ends."""
    for i, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return i
    return None if len(one) == len(other) else min(len(one), len(other))


def step_at(steps: Sequence[int | str], index: int) -> int | str | None:
    """The step there, None where the run has ended."""
    return steps[index] if index < len(steps) else None


def path_of(name: str, row: Row | None, greedy: int | str | None, speculative: int | str | None) -> Path | None:
    """The gap in one path, None where its row lists neither of the tokens."""
    if row is None or greedy is None or speculative is None:
        return None
    ours, theirs = row.logprobs.get(greedy), row.logprobs.get(speculative)
    if ours is None and theirs is None:
        return None
    lowest = min(row.logprobs.values())
    if theirs is None:
        return Path(name, float(ours or 0.0) - lowest, at_least=True)
    if ours is None:
        return Path(name, lowest - theirs)
    return Path(name, ours - theirs)


def noise_between(one: Row | None, other: Row | None, n: int = 5) -> float | None:
    """Largest difference of log-probability over the ``n`` tokens that the first row puts on top and both list."""
    if one is None or other is None:
        return None
    top = sorted(one.logprobs, key=lambda token: -one.logprobs[token])[:n]
    apart = [abs(one.logprobs[token] - other.logprobs[token]) for token in top if token in other.logprobs]
    finite = [value for value in apart if value < float("inf")]
    return max(finite) if finite else None


def _shown(token: int | str | None) -> str:
    if token is None:
        return "nothing (it ends)"
    return str(token) if isinstance(token, int) else repr(inert(token, 40))
