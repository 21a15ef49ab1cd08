# SPDX-License-Identifier: Apache-2.0
"""Scratch arrays of a forward pass, made once for each number of rows and used again by every layer and token.

A fresh array of a few megabytes costs more in page faults than the arithmetic on it, and at decode making a dozen views
for each layer would cost more than the layer's vector operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.gguf_hparams import Hparams
    from reference_engine.kernels.library import KernelLibrary

    F32 = NDArray[np.float32]

_KEPT = 16
"""Numbers of rows whose views are kept: 1, a chunk of a prompt, its rest, and the widths of a speculative verify."""


@dataclass(frozen=True)
class LayerShape:
    """Sizes of one layer. ``key`` and ``value`` are elements of one head."""

    n_embd: int
    heads: int
    kv_heads: int
    key: int
    value: int
    n_ff: int


def layer_shape(hparams: Hparams, layer: int) -> LayerShape:
    """Of layer ``layer`` of a model, or of the block behind its last one."""
    return LayerShape(
        n_embd=hparams.n_embd,
        heads=hparams.layers("attention.head_count")[layer],
        kv_heads=hparams.layers("attention.head_count_kv")[layer],
        key=hparams.head_size(layer),
        value=hparams.head_size(layer, "value"),
        n_ff=hparams.layers("feed_forward_length")[layer],
    )


class Rows:
    """The arrays of M rows through one layer; ``q``, ``k`` and ``v`` share their memory with ``qkv``."""

    __slots__ = ("attended", "gate_up", "h", "k", "q", "qkv", "v", "x", "y")

    x: F32  # [M, n_embd] the residual stream
    h: F32  # [M, n_embd] normed input of attention or FFN
    qkv: tuple[F32, F32, F32]  # [M, heads * key], [M, kv_heads * key], [M, kv_heads * value]
    q: F32  # [M, heads, key]
    k: F32  # [M, kv_heads, key]
    v: F32  # [M, kv_heads, value]
    attended: F32  # [M, heads * value]
    gate_up: tuple[F32, F32]  # [M, n_ff] each
    y: F32  # [M, n_embd] what is added to the residual stream

    def arrays(self) -> tuple[F32, ...]:
        return (self.x, self.h, *self.qkv, self.q, self.k, self.v, self.attended, *self.gate_up, self.y)


class Workspace:
    """``at(m)`` gives one :class:`Rows` for each layer; layers of one shape get the same one."""

    def __init__(self, shapes: Sequence[LayerShape], kernels: KernelLibrary | None = None) -> None:
        self._shapes, self._kernels = tuple(shapes), kernels
        self._made: dict[int, tuple[Rows, ...]] = {}
        self._flat: dict[str, F32] = {}
        self._capacity = 0

    def at(self, m: int) -> tuple[Rows, ...]:
        """Contents are undefined, and overwritten by the next pass whatever its number of rows."""
        made = self._made.get(m)
        if made is not None:
            return made
        if m > self._capacity or len(self._made) >= _KEPT:
            self.clear()
        if m > self._capacity:
            self._flat.clear()
            self._capacity = m
        by_shape: dict[LayerShape, Rows] = {}
        for shape in self._shapes:
            if shape not in by_shape:
                by_shape[shape] = self._rows(m, shape)
        made = tuple(by_shape[shape] for shape in self._shapes)
        self._made[m] = made
        if self._kernels is not None:
            self._kernels.pin(*(array for rows in by_shape.values() for array in rows.arrays()))
        return made

    def clear(self) -> None:
        """Forget all views, and their pointers."""
        if self._kernels is not None:
            self._kernels.unpin(*(array for made in self._made.values() for rows in made for array in rows.arrays()))
        self._made.clear()

    def _rows(self, m: int, shape: LayerShape) -> Rows:
        rows = Rows()
        rows.x = self._take("x", m, shape.n_embd)
        rows.h = self._take("h", m, shape.n_embd)
        rows.qkv = (
            self._take("q", m, shape.heads * shape.key),
            self._take("k", m, shape.kv_heads * shape.key),
            self._take("v", m, shape.kv_heads * shape.value),
        )
        rows.q = rows.qkv[0].reshape(m, shape.heads, shape.key)
        rows.k = rows.qkv[1].reshape(m, shape.kv_heads, shape.key)
        rows.v = rows.qkv[2].reshape(m, shape.kv_heads, shape.value)
        rows.attended = self._take("attended", m, shape.heads * shape.value)
        rows.gate_up = (self._take("gate", m, shape.n_ff), self._take("up", m, shape.n_ff))
        rows.y = self._take("y", m, shape.n_embd)
        return rows

    def _take(self, name: str, m: int, width: int) -> F32:
        """[m, width] out of the memory kept under ``name``, which layers of other shapes use too."""
        flat = self._flat.get(name)
        if flat is None or flat.size < m * width:
            flat = np.zeros(self._capacity * width, dtype=np.float32)
            self._flat[name] = flat
        return flat[: m * width].reshape(m, width)
