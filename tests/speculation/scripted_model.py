# SPDX-License-Identifier: Apache-2.0
"""A target whose greedy token follows from the whole text before it, and which notices any misuse of its cache."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reference_engine.speculation.verify import Rows


class ScriptedModel:
    """Token after a text: a hash of its last ``order`` tokens, so that the text repeats itself like a real one.

    ``wrong`` of a hundred texts give another token: a draft that is right most of the time.
    """

    def __init__(self, n_vocab: int = 7, order: int = 3, n_ctx: int = 400, wrong: int = 0, salt: str = "") -> None:
        self.n_vocab, self.order, self.n_ctx, self.wrong, self.salt = n_vocab, order, n_ctx, wrong, salt
        self.held: list[int] = []
        self.passes = 0

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        assert first == len(self.held), "a pass must begin where the cache ends"
        assert tokens, "an empty pass"
        self.passes += 1
        logits = np.zeros((len(tokens), self.n_vocab), dtype=np.float32)
        for i, token in enumerate(tokens):
            self.held.append(token)
            logits[i, self.after(self.held)] = 1.0
        assert len(self.held) <= self.n_ctx, "more tokens than the context has room for"
        return Rows(logits, self.hidden(len(tokens)))

    def hidden(self, n: int) -> NDArray[np.float32] | None:
        del n
        return None

    def fill(self, tokens: Sequence[int], first: int, *, hidden: bool) -> NDArray[np.float32] | None:
        rows = self.forward(tokens, first)
        return rows.hidden if hidden else None

    def truncate(self, n_past: int) -> None:
        assert n_past <= len(self.held)
        del self.held[n_past:]

    def after(self, text: Sequence[int]) -> int:
        digest = hashlib.sha256(f"{self.salt}{list(text[-self.order :])}".encode()).digest()
        miss = hashlib.sha256(f"{list(text)}".encode()).digest()[0] * 100 < 256 * self.wrong
        return (digest[0] + miss) % self.n_vocab
