# SPDX-License-Identifier: Apache-2.0
"""The cells of one layer's keys and values.

A cell holds one token's row. Keys stand in tiles of 16 cells, transposed, so that attention multiplies 16 cells at
once and each of a dot product's 16 lanes is a value of its own; values stand row by row. A layer whose attention
looks back over a window only may live in a ring: the cell of a position is the position modulo the capacity, and the
capacity is the window plus the largest batch. Attention goes by position, never by cell, so a ring and a full cache
give the same bits, and cells of removed tokens are never looked at.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from reference_engine.errors import ContextFull, UsageError
from reference_engine.kv_cache_formats import Codes, KvFormat, decode, encode, hadamard
from reference_engine.vector_ops_math import F32

I32: TypeAlias = "npt.NDArray[np.int32]"
TILE = 16
# Cells come in whole flash blocks, so that a block's positions never part at the ring's end.
CELLS = 64
MOST_VALUES = 1024  # of a head; kernels/src/kv_lanes.h


def _round_up(n: int, unit: int) -> int:
    return -(-n // unit) * unit


class KvLayer:
    """Keys and values of one layer.

    ``k_codes`` [Hkv, cells / 16, codes of a row, 16], ``k_scales`` [Hkv, cells / 16, scales of a row, 16],
    ``v_codes`` [Hkv, cells, codes of a row], ``v_scales`` [Hkv, cells, scales of a row]. ``rot_k`` and ``rot_v`` are
    the sizes of the Hadamard blocks in which rows are rotated before they are stored (0: not at all).
    """

    def __init__(
        self,
        n_kv_heads: int,
        k_dim: int,
        v_dim: int,
        n_ctx: int,
        kinds: tuple[KvFormat, KvFormat],
        *,
        rotation: tuple[int, int] = (0, 0),
        window: int = 0,
        n_batch: int = 512,
        ring: bool = True,
    ) -> None:
        self.n_kv_heads, self.k_dim, self.v_dim = n_kv_heads, k_dim, v_dim
        self.kind_k, self.kind_v = kinds
        self.rot_k, self.rot_v = rotation
        self.n_ctx, self.window = n_ctx, window
        for what, dim, kind in (("key", k_dim, self.kind_k), ("value", v_dim, self.kind_v)):
            if not 0 < dim <= MOST_VALUES or dim % 8:
                raise UsageError(
                    f"attention needs {what} heads of a multiple of 8 values up to {MOST_VALUES}, not {dim}"
                )
            if kind.quantised and dim % kind.values_per_scale:
                raise UsageError(
                    f"a {kind.name} cache needs {what} heads of a multiple of {kind.values_per_scale} values, "
                    f"not {dim}: take f16 or f32"
                )
        full = _round_up(n_ctx, CELLS)
        self.capacity = min(full, _round_up(window + n_batch, CELLS)) if window > 0 and ring else full
        self.written = 0  # one more than the highest position ever written since the cells were empty
        self.oldest = 0  # the lowest position whose row may still be there
        # Changes when the arrays do, for those who keep pointers into them.
        self.generation = 0
        self.native: Any = None  # what the C library keeps of this layer (kv_cache_native.py)
        self._allocate()

    def _allocate(self) -> None:
        heads, tiles = self.n_kv_heads, self.capacity // TILE
        k, v = self.kind_k, self.kind_v
        self.k_codes: Codes = np.zeros((heads, tiles, k.codes(self.k_dim), TILE), k.code)
        self.k_scales = np.zeros((heads, tiles, k.scales(self.k_dim), TILE), np.float16)
        self.v_codes: Codes = np.zeros((heads, self.capacity, v.codes(self.v_dim)), v.code)
        self.v_scales = np.zeros((heads, self.capacity, v.scales(self.v_dim)), np.float16)

    @property
    def is_ring(self) -> bool:
        return self.capacity < self.n_ctx

    @property
    def row_bytes(self) -> int:
        """Bytes of one token: keys and values of all heads."""
        return self.n_kv_heads * (self.kind_k.row_bytes(self.k_dim) + self.kind_v.row_bytes(self.v_dim))

    def claim(self, positions: I32) -> None:
        """Makes room for rows at rising positions. ContextFull beyond the last position of the context."""
        first, last = int(positions[0]), int(positions[-1])
        if last >= self.n_ctx:
            raise ContextFull(f"position {last} is beyond the context of {self.n_ctx} tokens: make the context larger")
        # The first row still looks back over its window when the last one has been written.
        needed = min(self.window - 1 + last + 1 - first, last + 1) if self.is_ring else 0
        if needed > self.capacity:
            self._grow(needed)
        self.written = max(self.written, last + 1)
        self.oldest = max(self.oldest, self.written - self.capacity)

    def _grow(self, cells: int) -> None:
        old = (self.k_codes, self.k_scales, self.v_codes, self.v_scales)
        tiles = np.arange(self.oldest // TILE, _round_up(self.written, TILE) // TILE)
        rows = np.arange(self.oldest, self.written)
        before = self.capacity
        self.capacity = min(_round_up(cells, CELLS), _round_up(self.n_ctx, CELLS))
        self.generation += 1
        self._allocate()
        # The oldest tile may be half overwritten by the newest rows; those cells are out of every window.
        self.k_codes[:, tiles % (self.capacity // TILE)] = old[0][:, tiles % (before // TILE)]
        self.k_scales[:, tiles % (self.capacity // TILE)] = old[1][:, tiles % (before // TILE)]
        self.v_codes[:, rows % self.capacity] = old[2][:, rows % before]
        self.v_scales[:, rows % self.capacity] = old[3][:, rows % before]

    def append(self, k: F32, v: F32, positions: I32) -> None:
        """Stores keys [M, Hkv, Dk] and values [M, Hkv, Dv] of the tokens at M rising positions."""
        self.claim(positions)
        cells = np.asarray(positions) % self.capacity
        k_codes, k_scales = encode(hadamard(k, self.rot_k) if self.rot_k else k, self.kind_k)
        v_codes, v_scales = encode(hadamard(v, self.rot_v) if self.rot_v else v, self.kind_v)
        tile, lane = np.divmod(cells, TILE)
        self.k_codes[:, tile, :, lane] = k_codes
        self.k_scales[:, tile, :, lane] = k_scales
        self.v_codes[:, cells] = v_codes.transpose(1, 0, 2)
        self.v_scales[:, cells] = v_scales.transpose(1, 0, 2)

    def keys(self, head: int, first_tile: int, tiles: int) -> F32:
        """Keys of ``tiles`` tiles from position 16 * ``first_tile`` on: f32 [tiles, Dk, 16]."""
        at = np.arange(first_tile, first_tile + tiles) % (self.capacity // TILE)
        codes = self.k_codes[head, at].transpose(0, 2, 1)
        scales = self.k_scales[head, at].transpose(0, 2, 1)
        return np.ascontiguousarray(decode(codes, scales, self.kind_k).transpose(0, 2, 1))

    def values(self, head: int, first: int, n: int) -> F32:
        """Values of n positions from ``first`` on: f32 [n, Dv]."""
        at = np.arange(first, first + n) % self.capacity
        return decode(self.v_codes[head, at], self.v_scales[head, at], self.kind_v)

    def can_truncate(self, n_past: int) -> bool:
        return n_past == 0 or not self.is_ring or max(0, n_past - self.window + 1) >= self.oldest

    def truncate(self, n_past: int) -> None:
        if n_past == 0:
            self.written = self.oldest = 0
