# SPDX-License-Identifier: Apache-2.0
"""ngram-map-k and ngram-map-k4v: remember what followed each key n-gram, and how much of it was right last time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reference_engine.speculation.drafter import Round, TargetBatch

MAX_VALUES = 4
"""Continuations remembered for one key."""


@dataclass
class _Value:
    start: int
    times: int
    length: int


@dataclass
class _Key:
    hits: int = 0
    counted: int = 0
    values: list[_Value] = field(default_factory=list)
    length: int = 0


@dataclass
class NgramMap:
    """The last ``size_n`` tokens are the key; up to ``size_m`` tokens after its newest whole occurrence are the draft.

    ``only_keys`` is ngram-map-k. Without it (ngram-map-k4v) up to four different continuations are counted and one is
    used only if it came at least twice as often as the others together. Names and defaults are llama.cpp's (size_n 12,
    size_m 48, min_hits 1).

    Where llama.cpp b11434 differs (see ``ngram_map_compat``), this does what its parameters say: ``min_hits`` holds for
    both kinds, a key whose draft failed drafts one token next time instead of none for ever, a draft that was right to
    its end grows again, the continuation that was counted most often is the one drafted, and a text that got shorter is
    learnt anew instead of ending the process.
    """

    size_n: int = 12
    size_m: int = 48
    min_hits: int = 1
    only_keys: bool = True
    wants_hidden: bool = False
    _starts: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    _keys: dict[tuple[int, ...], _Key] = field(default_factory=dict)
    _indexed: int = 0
    _last: tuple[tuple[int, ...], int, int] | None = None

    @property
    def name(self) -> str:
        return "ngram-map-k" if self.only_keys else "ngram-map-k4v"

    def begin(self, tokens: Sequence[int]) -> None:
        del tokens
        self._forget()

    def process(self, batch: TargetBatch) -> None:
        del batch

    def draft(self, now: Round) -> list[int]:
        n, m, tokens = self.size_n, self.size_m, now.tokens
        self._last = None
        if len(tokens) + n < self._indexed:
            self._forget()
        if len(tokens) < n:
            return []
        self._index(tokens)
        pattern = (*tokens[len(tokens) - n + 1 :], now.id_last)
        starts = self._starts.get(pattern)
        if not starts:
            return []
        key = self._keys.setdefault(pattern, _Key(length=m))
        key.hits += 1
        if key.hits < self.min_hits:
            return []
        start, length, slot = starts[-1] + n, key.length, 0
        if not self.only_keys:
            self._count(key, starts, tokens)
            best = _clear_winner(key.values)
            if best is None:
                return []
            start, length, slot = key.values[best].start, key.values[best].length, best
        draft = list(tokens[start : start + min(m, length)])
        self._last = (pattern, slot, len(draft))
        return draft

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        del n_past
        if not own or self._last is None:
            return
        pattern, slot, drafted = self._last
        key = self._keys[pattern]
        # Right to its end: as long as allowed next time, because what came after the end is not known to be wrong.
        length = self.size_m if n_accepted >= drafted else max(n_accepted, 1)
        if self.only_keys:
            key.length = length
        else:
            key.values[slot].length = length

    def _forget(self) -> None:
        self._starts.clear()
        self._keys.clear()
        self._indexed = 0
        self._last = None

    def _index(self, tokens: Sequence[int]) -> None:
        """Every n-gram that has ``size_m`` tokens after it."""
        n = self.size_n
        end = len(tokens) - n - self.size_m + 1
        for start in range(self._indexed, end):
            self._starts.setdefault(tuple(tokens[start : start + n]), []).append(start)
        self._indexed = max(self._indexed, end)

    def _count(self, key: _Key, starts: list[int], tokens: Sequence[int]) -> None:
        m = self.size_m
        for start in (at + self.size_n for at in starts[key.counted :]):
            here = list(tokens[start : start + m])
            for value in key.values:
                if list(tokens[value.start : value.start + m]) == here:
                    value.times += 1
                    break
            else:
                if len(key.values) < MAX_VALUES:
                    key.values.append(_Value(start, 1, m))
        key.counted = len(starts)


def _clear_winner(values: list[_Value]) -> int | None:
    best = max(range(len(values)), key=lambda i: values[i].times)
    others = sum(value.times for i, value in enumerate(values) if i != best)
    return best if values[best].times >= 2 * others else None
