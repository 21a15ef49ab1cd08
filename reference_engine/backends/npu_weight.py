# SPDX-License-Identifier: Apache-2.0
"""A weight as the NPU pipelines hold it, and how it is made of a tensor in numpy (the C does the same in one call)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends import quantizer
from reference_engine.backends.hadamard import transform_rows
from reference_engine.backends.interface import F32, NonFinite
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.signs import Signs


class RowSource(Protocol):
    """What a weight is made of: a GgufTensor, or anything that gives float32 rows."""

    @property
    def name(self) -> str: ...
    @property
    def row_elements(self) -> int: ...
    @property
    def n_rows(self) -> int: ...
    def row_blocks(self) -> Iterator[tuple[int, F32]]: ...


@dataclass(frozen=True)
class WeightSegment:
    """Rows ``n0`` to ``n1`` of the weight over ``k0`` to ``k1`` of the padded K: one product of one core.

    ``activation`` is the number of the prepared activation it takes: that of its K segment, or with rank-one scales one
    of its own, because ``fold`` float32 [k1 - k0] (v) multiplies the activations first. ``scale`` float32 [n1 - n0].
    """

    k0: int
    k1: int
    n0: int
    n1: int
    k_index: int
    activation: int
    scale: F32
    fold: F32 | None = None


@dataclass
class NpuWeight:
    """One weight [N, K]. ``divisor`` undoes the unnormalised transform (1 without). Segments: K outer, N inner."""

    name: str
    n_in: int
    n_out: int
    pipeline: Pipeline
    k_op: int
    divisor: int
    signs: Signs | None
    segments: tuple[WeightSegment, ...]
    quantized: Callable[[int], NDArray[Any]] = field(repr=False)
    """Segment number -> int8 [n1 - n0, k1 - k0] in row order, float16 for fp16."""
    native: Any = field(default=None, repr=False)
    """The same weight in C memory (:class:`reference_engine.backends.native.NativeWeight`), where it is."""

    @property
    def activations(self) -> tuple[WeightSegment, ...]:
        """One segment for each prepared activation, in order."""
        return tuple({segment.activation: segment for segment in self.segments}.values())


def build_weight(source: RowSource, pipeline: Pipeline) -> NpuWeight:
    """Quantise a weight. NonFinite where it holds NaN or infinity."""
    k, n = source.row_elements, source.n_rows
    block, k_op = pipeline.block(k), pipeline.k_op(k)
    signs = pipeline.signs(source.name, k_op) if pipeline.hadamard != "none" else None
    k_parts, n_parts = pipeline.k_segments(k), pipeline.n_segments(n)

    def blocks() -> Iterator[tuple[int, F32]]:
        for start, rows in source.row_blocks():
            finite = np.isfinite(rows).all(axis=1)
            if not finite.all():
                raise NonFinite(source.name, "weight", start + int(np.argmin(finite)))
            yield start, rows if signs is None else transform_rows(rows, signs, k_op, block)

    maker = (
        _make_half if pipeline.bits == 16 else _make_rank_one if pipeline.weight_scale == "rank-one" else _make_plain
    )
    segments, arrays = maker(blocks, pipeline, k_parts, n_parts)
    return NpuWeight(source.name, k, n, pipeline, k_op, block, signs, segments, arrays.__getitem__)


Parts = tuple[tuple[int, int], ...]
Blocks = Callable[[], Iterator[tuple[int, F32]]]
Made = tuple[tuple[WeightSegment, ...], list[NDArray[Any]]]


def _grid(k_parts: Parts, n_parts: Parts) -> Iterator[tuple[int, int, int, int, int, int]]:
    for i, (k0, k1) in enumerate(k_parts):
        for j, (n0, n1) in enumerate(n_parts):
            yield i, j, k0, k1, n0, n1


def _make_half(blocks: Blocks, pipeline: Pipeline, k_parts: Parts, n_parts: Parts) -> Made:
    arrays = {(i, j): np.empty((n1 - n0, k1 - k0), np.float16) for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts)}
    for start, rows in blocks():
        with np.errstate(over="ignore"):
            half = rows.astype(np.float16)
        for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts):
            _put(arrays[i, j], n0, n1, start, half[:, k0:k1])
    segments = tuple(
        WeightSegment(k0, k1, n0, n1, i, i, np.ones(n1 - n0, np.float32))
        for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts)
    )
    return segments, list(arrays.values())


def _make_plain(blocks: Blocks, pipeline: Pipeline, k_parts: Parts, n_parts: Parts) -> Made:
    """One scale per channel, per segment or per tensor. Segment and tensor scales need the maxima before."""
    n = n_parts[-1][1]
    amax = np.zeros((len(k_parts), n), np.float32)
    for start, rows in blocks():
        for i, (k0, k1) in enumerate(k_parts):
            most = quantizer.magnitudes(rows[:, k0:k1], pipeline).max(axis=1, initial=0.0)
            amax[i, start : start + rows.shape[0]] = most
    if pipeline.weight_scale == "segment":
        for i, _, _, _, n0, n1 in _grid(k_parts, n_parts):
            amax[i, n0:n1] = amax[i, n0:n1].max()
    elif pipeline.weight_scale == "tensor":
        amax[:] = amax.max()
    scale = quantizer.weight_scale(amax, pipeline)
    arrays = {(i, j): np.empty((n1 - n0, k1 - k0), np.int8) for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts)}
    for start, rows in blocks():
        for i, (k0, k1) in enumerate(k_parts):
            inverse = quantizer.reciprocal(scale[i, start : start + rows.shape[0]])
            with np.errstate(over="ignore", invalid="ignore"):
                q = quantizer.to_integers(rows[:, k0:k1] * inverse[:, None], pipeline).q
            for j, (n0, n1) in enumerate(n_parts):
                _put(arrays[i, j], n0, n1, start, q)
    segments = tuple(
        WeightSegment(k0, k1, n0, n1, i, i, scale[i, n0:n1]) for i, _, k0, k1, n0, n1 in _grid(k_parts, n_parts)
    )
    return segments, list(arrays.values())


def _make_rank_one(blocks: Blocks, pipeline: Pipeline, k_parts: Parts, n_parts: Parts) -> Made:
    """Three passes: u of each channel, v of each k over the rows of a core slice, the integers."""
    n = n_parts[-1][1]
    u = np.empty((len(k_parts), n), np.float32)
    v = {(i, j): np.zeros(k1 - k0, np.float32) for i, j, k0, k1, _, _ in _grid(k_parts, n_parts)}
    arrays = {(i, j): np.empty((n1 - n0, k1 - k0), np.int8) for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts)}
    for start, rows in blocks():
        for i, (k0, k1) in enumerate(k_parts):
            most = quantizer.magnitudes(rows[:, k0:k1], pipeline).max(axis=1, initial=0.0)
            u[i, start : start + rows.shape[0]] = quantizer.row_factor(most, pipeline)
    for start, rows in blocks():
        for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts):
            inside = slice(max(n0 - start, 0), max(n1 - start, 0))
            part = quantizer.magnitudes(rows[inside, k0:k1], pipeline)
            if part.shape[0]:
                first = max(n0, start)
                factors = quantizer.column_factor(part, u[i, first : first + part.shape[0]], pipeline)
                np.maximum(v[i, j], factors, out=v[i, j])
    for start, rows in blocks():
        for i, j, k0, k1, n0, n1 in _grid(k_parts, n_parts):
            of_rows = u[i, start : start + rows.shape[0]]
            _put(arrays[i, j], n0, n1, start, quantizer.rank_one_integers(rows[:, k0:k1], of_rows, v[i, j], pipeline))
    segments = tuple(
        WeightSegment(k0, k1, n0, n1, i, number, u[i, n0:n1], v[i, j])
        for number, (i, j, k0, k1, n0, n1) in enumerate(_grid(k_parts, n_parts))
    )
    return segments, list(arrays.values())


def _put(target: NDArray[Any], n0: int, n1: int, start: int, rows: NDArray[Any]) -> None:
    """Those of ``rows`` (numbered from ``start``) that lie in n0 to n1, to their place in the segment's array."""
    first, last = max(n0, start), min(n1, start + rows.shape[0])
    if first < last:
        target[first - n0 : last - n0] = rows[first - start : last - start]
