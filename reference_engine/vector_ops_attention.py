# SPDX-License-Identifier: Apache-2.0
"""Attention in NumPy, in the very order of sums of ``kernels/src/attention_*.c``; slow, and the twin of that code.

For one query row at position p the visible positions are max(0, p - window + 1) to p, and:

- a score is a dot product of 16 lanes: lane l sums the products of k = l, l + 16, ... in rising k, from +0, each
  rounded; lanes fold 16, 8, 4, 2, 1 (lane i + lane i + half); then times ``scale``, then the soft cap;
- full: m is the largest visible score, e = exp(s - m); the sum of e runs in 16 lanes by absolute position modulo 16,
  in rising position, folded likewise; each output value is the sum of e v in rising position, divided by that sum;
- flash: the same over blocks of 64 absolute positions; at each block m may rise, and sums so far are multiplied by
  exp(m before - m).

Nothing of this depends on how many rows there are, on threads, or on where a ring begins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from reference_engine import vector_ops_math as vm
from reference_engine.kv_cache_cells import I32, TILE, KvLayer
from reference_engine.kv_cache_formats import hadamard
from reference_engine.vector_ops_math import F32, f32

I64: TypeAlias = "npt.NDArray[np.int64]"
FLASH_TILES = 4  # 64 positions
_CHUNK = 1 << 21  # values of one intermediate array


@dataclass(frozen=True)
class Scoring:
    """How a dot product becomes a score, and which positions a row sees."""

    scale: np.float32
    softcap: np.float32
    window: int
    flash: bool


def attention(q: F32, layer: KvLayer, positions: I32, how: Scoring, out: F32) -> F32:
    """Writes the attention of queries q [M, H, Dk] to out [M, H * Dv]."""
    rows, heads, _ = q.shape
    group = heads // layer.n_kv_heads
    if layer.rot_k:
        q = hadamard(q, layer.rot_k)
    result = out.reshape(rows, heads, layer.v_dim)
    at = np.repeat(np.asarray(positions, np.int64), group)
    first = np.maximum(0, at - how.window + 1) if how.window else np.zeros_like(at)
    step = max(1, _CHUNK // (TILE * (int(at.max()) + TILE)))
    for head in range(layer.n_kv_heads):
        queries = q[:, head * group : (head + 1) * group].reshape(rows * group, layer.k_dim)
        answers = np.empty((rows * group, layer.v_dim), np.float32)
        for row in range(0, rows * group, step):
            some = slice(row, row + step)
            answers[some] = _attend(queries[some], layer, head, (first[some], at[some]), how)
        result[:, head * group : (head + 1) * group] = answers.reshape(rows, group, layer.v_dim)
    if layer.rot_v:
        result[...] = hadamard(result, layer.rot_v)
    return out


def fold(lanes: F32, axis: int) -> F32:
    """Lanes 16, 8, 4, 2, 1 along an axis of 16: lane i + lane i + half."""
    lanes = np.moveaxis(lanes, axis, 0)
    while lanes.shape[0] > 1:
        half = lanes.shape[0] // 2
        lanes = lanes[:half] + lanes[half:]
    result: F32 = lanes[0]
    return result


def scores(q: F32, keys: F32) -> F32:
    """Dot products of q [R, D] with the cells of tiles [T, D, 16]: f32 [R, T * 16]."""
    rows, dim = q.shape
    lanes = np.zeros((rows, TILE, keys.shape[0], TILE), np.float32)
    for start in range(0, dim, TILE):
        part = q[:, start : start + TILE]
        tile = keys[:, start : start + TILE].transpose(1, 0, 2)
        lanes[:, : part.shape[1]] += part[:, :, None, None] * tile[None]
    return fold(lanes, 1).reshape(rows, -1)


def _attend(q: F32, layer: KvLayer, head: int, span: tuple[I64, I64], how: Scoring) -> F32:
    first, last = span
    unit = FLASH_TILES if how.flash else 1
    low = int(first.min()) // (TILE * unit) * unit
    tiles = -(-(int(last.max()) + 1 - low * TILE) // (TILE * unit)) * unit
    position = np.arange(low * TILE, (low + tiles) * TILE)
    hidden: npt.NDArray[np.bool_] = np.logical_or(position < first[:, None], position > last[:, None])
    s = scores(q, layer.keys(head, low, tiles)) * how.scale
    if how.softcap:
        s = vm.tanh(s * (f32(1) / how.softcap)) * how.softcap
    s = np.where(hidden, f32(-np.inf), s)
    values = layer.values(head, low * TILE, tiles * TILE)
    return _flash(s, hidden, values) if how.flash else _full(s, hidden, values)


def _full(s: F32, hidden: npt.NDArray[np.bool_], values: F32) -> F32:
    e = vm.exp(s - s.max(axis=1, keepdims=True))
    lanes = np.zeros((len(s), TILE), np.float32)
    total = np.zeros((len(s), values.shape[1]), np.float32)
    _accumulate(e, hidden, values, lanes, total)
    return total / fold(lanes, 1)[:, None]


def _flash(s: F32, hidden: npt.NDArray[np.bool_], values: F32) -> F32:
    rows, block = len(s), FLASH_TILES * TILE
    highest = np.full((rows, 1), -np.inf, np.float32)
    lanes = np.zeros((rows, TILE), np.float32)
    total = np.zeros((rows, values.shape[1]), np.float32)
    for start in range(0, s.shape[1], block):
        part = slice(start, start + block)
        visible = ~hidden[:, part].all(axis=1, keepdims=True)
        raised = np.where(visible, np.maximum(highest, s[:, part].max(axis=1, keepdims=True)), highest)
        correction = np.where(visible, vm.exp(highest - raised), f32(1))
        lanes *= correction
        total *= correction
        e = np.where(visible, vm.exp(s[:, part] - raised), f32(0))
        _accumulate(e, hidden[:, part], values[part], lanes, total)
        highest = raised
    return total / fold(lanes, 1)[:, None]


def _accumulate(e: F32, hidden: npt.NDArray[np.bool_], values: F32, lanes: F32, total: F32) -> None:
    """Adds e [R, n] to its lanes [R, 16] and e v to total [R, Dv], in rising position; nothing of a hidden one."""
    for start in range(0, e.shape[1], TILE):
        lanes += e[:, start : start + TILE]
    some_hidden: npt.NDArray[np.bool_] = np.logical_or.reduce(hidden, axis=0)
    product = np.empty_like(total)
    for j in range(e.shape[1]):
        np.multiply(e[:, j : j + 1], values[j], out=product)
        if some_hidden[j]:
            product[hidden[:, j]] = 0
        total += product
