# SPDX-License-Identifier: Apache-2.0
"""What a gated delta net remembers of a text: the last rows of its convolution, and a matrix for each head.

A state cannot be cut back: what a token added is mixed into all of it. So the state at the beginning of the last batch
is kept, with what each token of the batch does to it; a cut inside that batch does the same arithmetic again up to
there, and leaves the bits that decoding no further would have left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]

LANES = 16


@dataclass(frozen=True)
class Deltas:
    """What M tokens do to a state: ``keys`` and ``values`` [M, heads, size], ``beta`` and ``decay`` [M, heads]."""

    keys: F32
    values: F32
    beta: F32
    decay: F32


class RecurrentState:
    """One layer. ``matrix`` float32 [heads, key, value]; ``rows`` float32 [kernel - 1, channels], the oldest first."""

    def __init__(self, heads: int, size: int, kernel: int, channels: int) -> None:
        self.matrix: F32 = np.zeros((heads, size, size), dtype=np.float32)
        self.rows: F32 = np.zeros((kernel - 1, channels), dtype=np.float32)
        self.n_past = 0
        self._base = self._copy()
        self._mixed: F32 = np.zeros((0, channels), dtype=np.float32)
        self._deltas: Deltas | None = None

    @property
    def oldest(self) -> int:
        """The lowest number of tokens that the state can be cut back to, 0 apart."""
        return self._base[2]

    @property
    def n_bytes(self) -> int:
        """Of the state itself; what is kept to cut it back comes to as much, and to a few rows for each token."""
        return self.matrix.nbytes + self.rows.nbytes

    def begin(self, mixed: F32) -> F32:
        """A batch of M tokens comes: its rows behind those that are remembered [kernel - 1 + M, channels]."""
        self._base = self._copy()
        self._mixed, self._deltas = np.array(mixed), None
        whole = np.concatenate((self.rows, mixed))
        self.rows = np.array(whole[len(mixed) :])
        return whole

    def advance(self, queries: F32, deltas: Deltas) -> F32:
        """Token after token through the state: [M, heads, value], each ``queries`` row [heads, key] times the state."""
        self._deltas = deltas
        out = np.empty_like(deltas.values)
        for i, query in enumerate(queries):
            self._step(deltas, i)
            out[i] = _contract(query, self.matrix)
        self.n_past += len(queries)
        return out

    def can_truncate(self, n_past: int) -> bool:
        return n_past == 0 or self.oldest <= n_past <= self.n_past

    def truncate(self, n_past: int) -> None:
        """As if the tokens from ``n_past`` on had never been."""
        if n_past == self.n_past:
            return
        if n_past == 0:
            self.matrix[...] = 0
            self.rows[...] = 0
            self.n_past = 0
            self._base, self._deltas = self._copy(), None
            return
        matrix, rows, past = self._base
        self.matrix, self.rows = matrix.copy(), rows.copy()
        keep = n_past - past
        if keep and self._deltas is not None:
            for i in range(keep):
                self._step(self._deltas, i)
            whole = np.concatenate((self.rows, self._mixed[:keep]))
            self.rows = np.array(whole[keep:])
        self.n_past = n_past

    def _step(self, d: Deltas, i: int) -> None:
        """S *= decay; S += k (v - k S) beta, for token ``i`` of a batch."""
        np.multiply(self.matrix, d.decay[i][:, None, None], out=self.matrix)
        key = d.keys[i]
        delta = (d.values[i] - _contract(key, self.matrix)) * d.beta[i][:, None]
        self.matrix += key[:, :, None] * delta[:, None, :]

    def _copy(self) -> tuple[F32, F32, int]:
        return self.matrix.copy(), self.rows.copy(), self.n_past


def _contract(vector: F32, matrix: F32) -> F32:
    """[heads, key] times [heads, key, value] over the keys, in the engine's order of 16 lanes: [heads, value]."""
    heads, keys, values = matrix.shape
    products = (vector[:, :, None] * matrix).reshape(heads, keys // LANES, LANES, values)
    lanes = products[:, 0]
    for block in range(1, keys // LANES):
        lanes = lanes + products[:, block]
    width = LANES
    while width > 1:
        width //= 2
        lanes = lanes[:, :width] + lanes[:, width:]
    folded: F32 = lanes[:, 0]
    return folded
