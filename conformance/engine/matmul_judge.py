# SPDX-License-Identifier: Apache-2.0
"""Holds one recorded matmul against the oracle, stage by stage, and says in words what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.engine.matmul_oracle import Piece, WeightOracle, collected, rules_of
from conformance.engine.recorded import Seen
from conformance.quantiser import diagnosis
from conformance.quantiser.oracle import F32, Answer, single
from reference_engine.backends.interface import SegmentRecord

_EXACT_ELEMENTS = 48
"""Elements of one result whose sum over K segments is made in fractions; all others are held within one last place."""


class Before:
    """The activations of the calls before, by weight and shape: what a stale one would be."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, tuple[int, ...]], F32] = {}

    def of(self, seen: Seen) -> F32 | None:
        """The last input of this weight with this shape, and keeps this one."""
        key = (seen.record.name, seen.record.x.shape)
        found, self._last[key] = self._last.get(key), seen.record.x
        return found


def wrong_matmul(seen: Seen, weight: WeightOracle, before: F32 | None, random: np.random.Generator) -> str | None:
    """One sentence for the first stage that differs, or None: scales of B, activation, sums, result."""
    record = seen.record
    cuts = [(p.k0, p.k1, p.n0, p.n1) for p in weight.pieces]
    found = [(s.k0, s.k1, s.n0, s.n1) for s in record.segments]
    small = all(np.abs(s.q.astype(np.int16)).max(initial=0) <= 7 for s in record.segments)
    if weight.pipeline.bits == 8 and small and record.x.any():
        return f"{seen.where}: the activation is int4 where the pipeline is int8: W4A4 was selected"
    if found != cuts:
        return f"{seen.where}: cut into {found}, and the pipeline cuts it into {cuts}"
    rows = weight.transformed(record.x)
    wanted: list[tuple[NDArray[Any], F32, NDArray[Any]]] = []
    for piece, segment in zip(weight.pieces, record.segments, strict=True):
        q, scale = weight.activation(rows, piece)
        sentence = _wrong_activation(weight, piece, segment, rows, want=(q, scale), before=before)
        if sentence is None and not np.array_equal(segment.weight_scale, piece.scale):
            at = int(np.argmax(segment.weight_scale != piece.scale))
            sentence = f"scale of B in channel {piece.n0 + at}: {segment.weight_scale[at]} instead of {piece.scale[at]}"
        if sentence is not None:
            return f"{seen.where}, K segment {piece.k_index}, columns {piece.n0} to {piece.n1}: {sentence}"
        wanted.append((q, scale, weight.sums(q, piece)))
    return _wrong_sums(seen, weight, [sums for _, _, sums in wanted]) or _wrong_result(
        seen, weight, [(scale, sums) for _, scale, sums in wanted], random
    )


def _wrong_activation(
    weight: WeightOracle,
    piece: Piece,
    segment: SegmentRecord,
    rows: F32,
    *,
    want: tuple[NDArray[Any], F32],
    before: F32 | None,
) -> str | None:
    q, scale = want
    same_q = np.array_equal(np.asarray(segment.q).view(q.dtype), q)
    if same_q and np.array_equal(segment.scale.view(np.uint32), scale.view(np.uint32)):
        return None
    if before is not None and before.shape[0] == rows.shape[0]:
        old_q, old_scale = weight.activation(weight.transformed(before), piece)
        if np.array_equal(segment.q, old_q) and np.array_equal(segment.scale, old_scale):
            return "stale A: the activation is that of the call before"
    if weight.pipeline.bits == 16:
        return "the fp16 activation is wrong"
    part = rows[:, piece.k0 : piece.k1]
    if piece.fold is not None:
        part = single(part.astype(np.float64) * piece.fold).astype(np.float32)
    answer = Answer(q, scale, 0)
    rules = rules_of(weight.pipeline, weight=False)
    return f"activation: {diagnosis.difference(part, np.asarray(segment.q), segment.scale, answer, rules)}"


def _wrong_sums(seen: Seen, weight: WeightOracle, want: Sequence[NDArray[Any]]) -> str | None:
    """Integers (fp16: float32) of all segments, bit for bit."""
    found = [np.asarray(segment.sums) for segment in seen.record.segments]
    for piece, ours, theirs in zip(weight.pieces, want, found, strict=True):
        if ours.shape == theirs.shape and ours.tobytes() == theirs.astype(ours.dtype).tobytes():
            continue
        where = f"{seen.where}, K segment {piece.k_index}, columns {piece.n0} to {piece.n1}"
        wrong = ours != theirs
        row, column = (int(at) for at in np.argwhere(wrong)[0]) if wrong.any() else (0, 0)
        return (
            f"{where}: {int(wrong.sum())} of {ours.size} sums are wrong, first row {row}, column {piece.n0 + column}: "
            f"{theirs[row, column]} instead of {ours[row, column]}{_cause(weight, piece, ours, theirs, want)}"
        )
    return None


def _cause(
    weight: WeightOracle, piece: Piece, ours: NDArray[Any], theirs: NDArray[Any], want: Sequence[NDArray[Any]]
) -> str:
    if not theirs.any():
        return f"; K segment {piece.k_index} is lost: its sums are all zero"
    for other, sums in zip(weight.pieces, want, strict=True):
        if other is not piece and sums.shape == theirs.shape and np.array_equal(sums, theirs):
            return f"; the slices of columns {piece.n0} to {piece.n1} and {other.n0} to {other.n1} have changed places"
    rows = np.flatnonzero((ours != theirs).any(axis=1))
    if rows.size == len(ours) - rows[0] and not theirs[rows].any():
        return f"; rows from {rows[0]} on were not computed: a slice of the batch is missing"
    return ""


def _wrong_result(
    seen: Seen, weight: WeightOracle, parts: Sequence[tuple[F32, NDArray[Any]]], random: np.random.Generator
) -> str | None:
    y = seen.record.y
    rough = np.zeros(y.shape)
    size = np.zeros(y.shape)
    for piece, (scale, sums) in zip(weight.pieces, parts, strict=True):
        term = sums.astype(np.float32).astype(np.float64) * weight.factor(scale, piece.scale)
        rough[:, piece.n0 : piece.n1] += term
        size[:, piece.n0 : piece.n1] += np.abs(term)
    count = max(piece.k_index for piece in weight.pieces) + 1
    near = np.abs(y - rough) <= size * count * 2.0**-23 + 2.0**-149
    if not near.all():
        row, column = (int(at) for at in np.argwhere(~near)[0])
        cause = next((f"; {words}" for words, other in _mistaken(weight, parts).items() if _close(y, other)), "")
        return (
            f"{seen.where}: {int((~near).sum())} of {y.size} results are not their sums times the scales, first row "
            f"{row}, column {column}: {y[row, column]} instead of {rough[row, column]:.9g}{cause}"
        )
    if count == 1:
        exact = single(rough).astype(np.float32)
        wrong = np.flatnonzero((exact != y).ravel())
        if wrong.size:
            at = int(wrong[0])
            return (
                f"{seen.where}: {wrong.size} of {y.size} results are off in the last place, first {y.flat[at]} instead "
                f"of {exact.flat[at]}: not the same bits as one float32 product"
            )
        return None
    for at in random.choice(y.size, min(y.size, _EXACT_ELEMENTS), replace=False):
        row, column = (int(i) for i in np.unravel_index(at, y.shape))
        terms = [
            (
                float(np.float32(sums[row, column - p.n0])),
                float(weight.factor(scale[row : row + 1], p.scale)[0, column - p.n0]),
            )
            for p, (scale, sums) in zip(weight.pieces, parts, strict=True)
            if p.n0 <= column < p.n1
        ]
        totals, factors = [t for t, _ in terms], [f for _, f in terms]
        want = collected(totals, factors, weight.pipeline.fma)
        if want != float(y[row, column]):
            other = collected(totals, factors, not weight.pipeline.fma) == float(y[row, column])
            how = "rounded twice where the sum is fused" if weight.pipeline.fma else "fused where it is rounded twice"
            tail = f"; {how}" if other else "; not the same bits as the float32 sum over K segments"
            return f"{seen.where}: row {row}, column {column} is {y[row, column]} instead of {want!r}{tail}"
    return None


def _close(y: F32, other: NDArray[np.float64]) -> bool:
    return bool(np.allclose(y, other, rtol=1e-5, atol=float(np.abs(other).max(initial=0.0)) * 1e-6))


def _mistaken(weight: WeightOracle, parts: Sequence[tuple[F32, NDArray[Any]]]) -> Mapping[str, NDArray[np.float64]]:
    """Wrong results by the words for the fault that gives them."""
    shape = (parts[0][1].shape[0], weight.pieces[-1].n1)

    def made(scale_of: Any, channel_of: Any) -> NDArray[np.float64]:
        found = np.zeros(shape)
        for piece, (scale, sums) in zip(weight.pieces, parts, strict=True):
            term = sums.astype(np.float64) * weight.factor(scale_of(piece, scale), channel_of(piece.scale))
            found[:, piece.n0 : piece.n1] += term
        return found

    first = parts[0][0]
    found = {"each channel has its neighbour's scale": made(lambda p, s: s, lambda c: np.roll(c, 1))}
    if weight.pieces[-1].k_index:
        found["every K segment has the scale of K segment 0"] = made(lambda p, s: first, lambda c: c)
    if weight.block > 1:
        found["the divisor of the Hadamard transform is missing"] = made(lambda p, s: s, lambda c: c) * weight.block
    return found
