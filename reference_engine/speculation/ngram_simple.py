# SPDX-License-Identifier: Apache-2.0
"""ngram-simple: the last tokens were here before; guess what came after them then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reference_engine.speculation.drafter import Round, Stateless


@dataclass
class NgramSimple(Stateless):
    """The newest earlier occurrence of the last ``size_n`` tokens, and up to ``size_m`` tokens after it.

    Names and defaults: llama.cpp b11434 (``--spec-ngram-simple-size-n`` 12, ``-size-m`` 48). ``compat`` repeats what
    its search does and this one does not: an occurrence at position 0 is never found, nothing is drafted while the text
    is no longer than ``size_n + size_m + 1``, nor from an occurrence with fewer than ``size_n`` tokens after it
    (common/ngram-map.cpp).
    """

    size_n: int = 12
    size_m: int = 48
    compat: bool = False
    name: str = "ngram-simple"

    def draft(self, now: Round) -> list[int]:
        tokens, n, m = now.tokens, self.size_n, self.size_m
        length = len(tokens)
        if length < n or (self.compat and length <= n + m + 1):
            return []
        pattern = [*tokens[length - n + 1 :], now.id_last]
        found = _last_before(tokens, pattern, *((length - n - 1, 1) if self.compat else (length - n, 0)))
        if found is None:
            return []
        after = list(tokens[found + n : found + n + m])
        if self.compat:
            return after if len(after) >= n else []
        # The token after the text itself is known too; an occurrence that reaches it repeats with this period.
        return [*after, now.id_last][:m]


def _last_before(tokens: Sequence[int], pattern: list[int], highest: int, lowest: int) -> int | None:
    """The highest start from ``highest`` down to ``lowest`` at which ``pattern`` stands in ``tokens``."""
    text = tokens if isinstance(tokens, list) else list(tokens)
    size, last = len(pattern), pattern[-1]
    for start in range(highest, lowest - 1, -1):
        # The newest token differs most often: it is looked at first.
        if text[start + size - 1] == last and text[start : start + size] == pattern:
            return start
    return None
