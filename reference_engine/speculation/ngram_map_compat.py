# SPDX-License-Identifier: Apache-2.0
"""ngram-map-k and ngram-map-k4v exactly as llama.cpp b11434 drafts, defects included (common/ngram-map.cpp).

The defects: ``min_hits`` is not looked at by ngram-map-k; a key or value whose last draft had no right token drafts
nothing ever after, and no length grows again; ngram-map-k4v picks the continuation counted most often but drafts the
one at the match; position 0 is never found; a draft asked for over a text shorter than at the last look ends the
process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from reference_engine.speculation.drafter import Round, SpeculationError, TargetBatch
from reference_engine.speculation.ngram_map import MAX_VALUES

HASH_ENTRIES = 262144
_FACTOR = 2654435761
_MAX_COUNT = 16380


@dataclass
class _Value:
    at: int = 0
    times: int = 0
    accepted: int = 0


@dataclass
class _Key:
    at: int
    values: list[_Value]
    counted: int = 0
    hits: int = 0


@dataclass
class NgramMapCompat:
    """Parameters as of ``NgramMap``. SpeculationError where llama.cpp aborts."""

    size_n: int = 12
    size_m: int = 48
    min_hits: int = 1
    only_keys: bool = True
    wants_hidden: bool = False
    _table: dict[int, int] = field(default_factory=dict)
    _hashed: int = 0
    _keys: list[_Key] = field(default_factory=list)
    _checked: int = 0
    _begun: int = 0
    _last: _Value | None = None

    @property
    def name(self) -> str:
        return "ngram-map-k" if self.only_keys else "ngram-map-k4v"

    def begin(self, tokens: Sequence[int]) -> None:
        size, clean = len(tokens), self._begun
        if clean > size:
            clean = max(size - self.size_n - self.size_m, 0)
        if size < self._checked:
            self._table = {slot: at for slot, at in self._table.items() if at < clean}
            self._hashed = max(clean - 1, 0)
            self._keys = [key for key in self._keys if key.at < clean and self._trimmed(key, clean)]
        self._checked = self._begun = size

    def process(self, batch: TargetBatch) -> None:
        del batch

    def draft(self, now: Round) -> list[int]:
        self._last = None
        n, m, tokens = self.size_n, self.size_m, now.tokens
        if len(tokens) < 2 * n + m:
            return []
        for name, at in (("idx_last_check", self._checked), ("size_last_begin", self._begun)):
            if at > len(tokens):
                raise SpeculationError(f"llama.cpp aborts here: map.{name} > cur_len: {at} > {len(tokens)}")
        self._checked = len(tokens)
        pattern = [*tokens[len(tokens) - n + 1 :], now.id_last]
        match = self._find(tokens, pattern)
        self._add_hashes(tokens)
        if match == 0:
            return []
        key = next((key for key in self._keys if list(tokens[key.at : key.at + n]) == pattern), None)
        if key is None:
            key = _Key(match, [_Value(accepted=m) for _ in range(MAX_VALUES)])
            self._keys.append(key)
        key.hits = min(key.hits + 1, _MAX_COUNT)
        slot = 0
        if not self.only_keys:
            if key.hits < self.min_hits:
                return []
            self._count(key, tokens, pattern, match)
            slot = max(range(MAX_VALUES), key=lambda i: key.values[i].times)
            others = sum(value.times for i, value in enumerate(key.values) if i != slot)
            if others > 0 and key.values[slot].times < 2 * others:
                return []
        self._last = key.values[slot]
        return list(tokens[match + n : match + n + min(m, self._last.accepted)])

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        del n_past
        if own and self._last is not None:
            self._last.accepted = n_accepted

    def _spans(self, length: int) -> tuple[range, range]:
        """Starts looked at one by one: those before the request's begin, then those after it, newest first."""
        reach = self.size_n + self.size_m + 1
        old = range(self._begun - reach, self._hashed, -1) if self._begun > reach else range(0)
        return old, range(length - reach, max(self._begun, self._hashed), -1)

    def _find(self, tokens: Sequence[int], pattern: list[int]) -> int:
        n = self.size_n
        at = self._table.get(_hash(pattern), 0)
        if at and at < len(tokens) - n - self.size_m - 1 and list(tokens[at : at + n]) == pattern:
            return at
        for span in self._spans(len(tokens)):
            for start in span:
                if list(tokens[start : start + n]) == pattern:
                    return start
        return 0

    def _add_hashes(self, tokens: Sequence[int]) -> None:
        n = self.size_n
        for span in self._spans(len(tokens)):
            for start in span:
                self._table.setdefault(_hash(tokens[start : start + n]), start)
        self._hashed = max(len(tokens) - n - self.size_m - 1, self._hashed)

    def _count(self, key: _Key, tokens: Sequence[int], pattern: list[int], match: int) -> None:
        n, m = self.size_n, self.size_m
        for start in range(key.counted, match + 1):
            if list(tokens[start : start + n]) != pattern:
                continue
            here = list(tokens[start + n : start + n + m])
            for value in key.values:
                if value.at == 0:
                    value.at, value.times, value.accepted = start + n, 0, m
                elif list(tokens[value.at : value.at + m]) != here:
                    continue
                value.times = min(value.times + 1, _MAX_COUNT)
                break
        key.counted = match

    def _trimmed(self, key: _Key, clean: int) -> bool:
        """Drop the values at and past ``clean``; False where none is left."""
        if self.only_keys:
            return True
        kept = [value for value in key.values if value.at == 0 or value.at < clean]
        key.values = kept + [_Value() for _ in range(MAX_VALUES - len(kept))]
        return key.values[0].at != 0


def _hash(ngram: Sequence[int]) -> int:
    mixed = 0
    for token in ngram:
        mixed = (mixed * _FACTOR + token) % (1 << 32)
    return mixed % HASH_ENTRIES
