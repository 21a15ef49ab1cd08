# SPDX-License-Identifier: Apache-2.0
"""Batches of tokens: pieces of the corpus, half of them with a piece that comes again, so that copying is learnt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

COPY_SHARE = 0.5


class Batches:
    """``text`` int tokens of the whole corpus. The stream of batches follows from ``seed``.

    ``copy_share``: rows in which a piece comes again, of ``shortest`` tokens at least.
    """

    def __init__(
        self,
        text: Sequence[int],
        *,
        rows: int,
        length: int,
        seed: int,
        copy_share: float = COPY_SHARE,
        shortest: int = 16,
    ) -> None:
        self.text = np.asarray(text, dtype=np.int64)
        self.rows, self.length, self.copy_share, self.shortest = rows, length, copy_share, shortest
        self.random = np.random.Generator(np.random.PCG64(seed))

    def next(self) -> NDArray[np.int64]:
        """[rows, length + 1]: inputs and, one to the left, targets."""
        return np.stack([self._row() for _ in range(self.rows)])

    def _piece(self, length: int) -> NDArray[np.int64]:
        start = int(self.random.integers(0, len(self.text) - length))
        return self.text[start : start + length]

    def _row(self) -> NDArray[np.int64]:
        whole = self.length + 1
        if self.random.random() >= self.copy_share:
            return self._piece(whole)
        piece = self._piece(int(self.random.integers(self.shortest, self.length // 2)))
        parts = [self._piece(int(self.random.integers(1, 32)))]
        while sum(len(part) for part in parts) < whole:
            parts.append(piece)
            if self.random.random() < 0.3:
                parts.append(self._piece(int(self.random.integers(1, 24))))
        return np.concatenate(parts)[:whole]
