# SPDX-License-Identifier: Apache-2.0
"""ngram-cache: counts of what followed each n-gram, in this text, in earlier ones, and in a corpus."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reference_engine.speculation.drafter import Round, Stateless

NGRAM_MAX = 4
NGRAM_STATIC = 2
DRAFT_LENGTH = 8
"""llama.cpp b11434 drafts eight tokens whatever its n_max says."""

Ngram = tuple[int, ...]
Counts = dict[Ngram, dict[int, int]]


@dataclass(frozen=True)
class Thresholds:
    """By size of the n-gram, from 1: least number of samples, least share of the winner in percent."""

    samples: tuple[int, int, int, int]
    percent: tuple[int, int, int, int]


LAX = Thresholds((2, 2, 1, 1), (66, 50, 50, 50))
STRICT = Thresholds((4, 3, 2, 2), (75, 66, 66, 66))


def count(counts: Counts, tokens: Sequence[int], n_new: int, sizes: range = range(1, NGRAM_MAX + 1)) -> None:
    """Add to ``counts`` what follows each n-gram of ``tokens`` at its last ``n_new`` tokens."""
    for size in sizes:
        for at in range(max(len(tokens) - n_new, size), len(tokens)):
            followers = counts.setdefault(tuple(tokens[at - size : at]), {})
            followers[tokens[at]] = followers.get(tokens[at], 0) + 1


def merge(into: Counts, other: Mapping[Ngram, Mapping[int, int]]) -> None:
    """Add the counts of ``other``."""
    for ngram, followers in other.items():
        mine = into.setdefault(ngram, {})
        for token, times in followers.items():
            mine[token] = mine.get(token, 0) + times


@dataclass
class NgramCache(Stateless):
    """Context counts first (lax thresholds), then ``dynamic`` (strict), then ``static`` alone (n-grams of two, lax).

    Where two tokens score alike the one that was seen first wins; llama.cpp takes whichever its hash map lists first,
    so drafts may differ there. ``compat`` repeats its two defects (common/speculative.cpp, b11434): n-grams are counted
    inside the tokens that are new since the last draft only, one or two in steady decoding, so that hardly anything is
    learnt from what is generated; and the counts are kept from request to request, while a shorter new prompt is not
    counted until it outgrows the old one.
    """

    static: Counts = field(default_factory=dict)
    dynamic: Counts = field(default_factory=dict)
    compat: bool = False
    name: str = "ngram-cache"
    context: Counts = field(default_factory=dict)
    _counted: int = 0

    def begin(self, tokens: Sequence[int]) -> None:
        del tokens
        if not self.compat:
            self.context.clear()
            self._counted = 0

    def draft(self, now: Round) -> list[int]:
        text = [*now.tokens, now.id_last]
        if self._counted < len(text):
            n_new = len(text) - self._counted
            count(self.context, text[self._counted :] if self.compat else text, n_new)
            self._counted = len(text)
        if len(text) < NGRAM_STATIC:
            return []
        draft: list[int] = []
        while len(draft) < DRAFT_LENGTH:
            token = self._next(text)
            if token is None:
                break
            draft.append(token)
            text.append(token)
        return draft

    def _next(self, text: Sequence[int]) -> int | None:
        corpus = self.static.get(tuple(text[-NGRAM_STATIC:]), {})
        for counts, limits in ((self.context, LAX), (self.dynamic, STRICT)):
            token = _by_longest(counts, text, corpus, limits)
            if token is not None:
                return token
        return _winner(corpus, {}, LAX, NGRAM_STATIC)


def _by_longest(counts: Counts, text: Sequence[int], corpus: Mapping[int, int], limits: Thresholds) -> int | None:
    for size in range(min(NGRAM_MAX, len(text)), 0, -1):
        token = _winner(counts.get(tuple(text[-size:]), {}), corpus, limits, size)
        if token is not None:
            return token
    return None


def _winner(followers: Mapping[int, int], corpus: Mapping[int, int], limits: Thresholds, size: int) -> int | None:
    """The token with the highest count, a hundredfold for each time the corpus has it, if it is clear enough."""
    if not followers:
        return None
    best = max(followers, key=lambda token: followers[token] * (100 * corpus[token] if token in corpus else 1))
    samples = sum(followers.values())
    if samples < limits.samples[size - 1] or 100 * followers[best] < limits.percent[size - 1] * samples:
        return None
    return best
