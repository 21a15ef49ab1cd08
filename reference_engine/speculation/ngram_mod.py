# SPDX-License-Identifier: Apache-2.0
"""ngram-mod: a table from the last ``n_match`` tokens to the token that followed them last."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from reference_engine.speculation.drafter import Round, TargetBatch

TABLE_ENTRIES = 4 * 1024 * 1024
_FACTOR = 6364136223846793005
_MODULUS = 1 << 64
_ADDED_AFTER = 32
"""New n-grams enter the table when this many tokens have come since the last time."""
_FULL = 0.25
_LOW, _LOW_ROUNDS = 0.25, 5


@dataclass
class NgramMod:
    """Names and defaults: llama.cpp b11434 (``n_match`` 24, ``n_min`` 48, ``n_max`` 64).

    With ``compat`` the table is llama.cpp's: 4 Mi slots without a check for collisions, kept from request to request
    (so a prompt that was generated from before drafts its old answer: a warm table makes any benchmark look good), and
    emptied only when more than a quarter is in use or after five poor drafts. Without, a slot belongs to one n-gram and
    each request begins with an empty table.
    """

    n_match: int = 24
    n_min: int = 48
    n_max: int = 64
    compat: bool = False
    name: str = "ngram-mod"
    wants_hidden: bool = False
    _table: dict[Hashable, int] = field(default_factory=dict)
    _added: int = 0
    _drafted: int = 0
    _poor: int = 0

    def begin(self, tokens: Sequence[int]) -> None:
        self._added = self._drafted = 0
        if not self.compat:
            self._table.clear()
            self._poor = 0
        self._add(tokens)
        if self.compat and len(self._table) > _FULL * TABLE_ENTRIES:
            self._table.clear()

    def draft(self, now: Round) -> list[int]:
        n = self.n_match
        self._drafted = 0
        if len(now.tokens) < n:
            return []
        if self._added + _ADDED_AFTER < len(now.tokens):
            self._add(now.tokens)
        window = [*now.tokens[len(now.tokens) - n + 1 :], now.id_last]
        draft: list[int] = []
        while len(draft) < self.n_max:
            token = self._table.get(self._key(window[-n:]))
            if token is None:
                break
            draft.append(token)
            window.append(token)
        # A table that ends a draft early says nothing: only a draft that reached n_max may be shorter than n_min.
        if len(draft) < self.n_min and len(draft) < self.n_max:
            return []
        self._drafted = len(draft)
        return draft

    def process(self, batch: TargetBatch) -> None:
        del batch

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        del n_past
        if not own or not self._drafted:
            return
        if n_accepted >= _LOW * self._drafted:
            self._poor = 0
            return
        self._poor += 1
        if self._poor >= _LOW_ROUNDS:
            self._table.clear()
            self._poor = self._added = 0

    def _add(self, tokens: Sequence[int]) -> None:
        n = self.n_match
        for start in range(self._added, len(tokens) - n):
            self._table[self._key(tokens[start : start + n])] = tokens[start + n]
        self._added = max(len(tokens) - n, 0)

    def _key(self, ngram: Sequence[int]) -> Hashable:
        if not self.compat:
            return tuple(ngram)
        mixed = 0
        for token in ngram:
            mixed = (mixed * _FACTOR + token) % _MODULUS
        return mixed % TABLE_ENTRIES
