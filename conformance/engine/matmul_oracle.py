# SPDX-License-Identifier: Apache-2.0
"""One weight in an NPU pipeline, said a second time: in float64 rounded to float32 once per operation, and integers.

Shares no arithmetic with the engine; of the engine's code it takes the pipeline's parameters, its cuts of K and N and
the sign vector, which are inputs. Arrays are [rows, K], [N, K], [M, N].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.quantiser import oracle
from conformance.quantiser.oracle import F32, F64, Rules, single
from reference_engine.backends.pipeline import Pipeline

_BLOCK = 1 << 21
"""Weight elements that are made wide at a time."""


def rules_of(pipeline: Pipeline, weight: bool) -> Rules:
    """The quantiser's rules for activations or for weights."""
    clip = pipeline.b_clip if weight else pipeline.a_clip
    return Rules(pipeline.qmax, clip, pipeline.clamp, empty_scale=1.0 if weight else 0.0)


def butterflies(rows: F32, signs: NDArray[np.int8], K: int, block: int) -> F32:
    """Signs, zeros up to ``K``, the Walsh-Hadamard transform of each block: partner of i is i with one bit turned."""
    values = np.zeros((rows.shape[0], K))
    values[:, : rows.shape[1]] = rows.astype(np.float64) * signs[: rows.shape[1]]
    at, reach = np.arange(K), 1
    while reach < block:
        partner = values[:, at ^ reach]
        values = single(np.where(at & reach, partner - values, values + partner))
        reach *= 2
    return values.astype(np.float32)


@dataclass(frozen=True)
class Piece:
    """One K segment of one core: the integers [n1 - n0, k1 - k0] and scale of its weight; ``fold`` of rank one."""

    k_index: int
    k0: int
    k1: int
    n0: int
    n1: int
    q: NDArray[Any]
    scale: F32
    fold: F32 | None


class WeightOracle:
    """A weight [N, K] of finite float32 rows. ``columns`` limits which rows of it are kept for products."""

    def __init__(self, name: str, w: F32, pipeline: Pipeline) -> None:
        self.pipeline, self.K = pipeline, w.shape[1]
        self.k_op, self.block = pipeline.k_op(self.K), pipeline.block(self.K)
        self.signs = pipeline.signs(name, self.k_op) if pipeline.hadamard != "none" else None
        self.pieces = tuple(self._pieces(self.transformed(w)))

    def transformed(self, rows: F32) -> F32:
        """Rows as the quantiser sees them."""
        return rows if self.signs is None else butterflies(rows, self.signs, self.k_op, self.block)

    def _pieces(self, w: F32) -> Iterator[Piece]:
        p, rules = self.pipeline, rules_of(self.pipeline, weight=True)
        k_parts, n_parts = p.k_segments(self.K), p.n_segments(w.shape[0])
        whole = np.abs(w).max(initial=0.0) if p.weight_scale == "tensor" else None
        for index, (k0, k1) in enumerate(k_parts):
            for n0, n1 in n_parts:
                part = w[n0:n1, k0:k1]
                if p.bits == 16:
                    yield Piece(index, k0, k1, n0, n1, oracle.halves(part), np.ones(n1 - n0, np.float32), None)
                    continue
                if p.weight_scale == "rank-one":
                    q, u, v = _rank_one(part, rules)
                    yield Piece(index, k0, k1, n0, n1, q, u, v)
                    continue
                scale = oracle.scales(part, rules)
                if p.weight_scale == "segment":
                    scale = np.full_like(scale, oracle.scales(part.reshape(1, -1), rules)[0])
                elif whole is not None:
                    scale = np.full_like(scale, oracle.scales(np.array([[whole]], np.float32), rules)[0])
                q = oracle.narrowed(oracle.nearest(oracle.scaled(part, scale)), rules)
                yield Piece(index, k0, k1, n0, n1, q, scale, None)

    def activation(self, x: F32, piece: Piece) -> tuple[NDArray[Any], F32]:
        """Integers (fp16: halves) [M, k1 - k0] and scales [M] of transformed rows ``x``."""
        part = x[:, piece.k0 : piece.k1]
        if self.pipeline.bits == 16:
            return oracle.halves(part), np.ones(len(x), np.float32)
        if piece.fold is not None:
            part = single(part.astype(np.float64) * piece.fold.astype(np.float64)).astype(np.float32)
        rules = rules_of(self.pipeline, weight=False)
        if self.pipeline.activation_scale == "tensor":
            scale = np.full(len(x), oracle.scales(part.reshape(1, -1), rules)[0], np.float32)
            return oracle.narrowed(oracle.nearest(oracle.scaled(part, scale)), rules), scale
        found = oracle.quantised(part, rules)
        return found.q, found.scale

    def sums(self, q: NDArray[Any], piece: Piece) -> NDArray[Any]:
        """What C holds: int32, int16 (int4), or float32 for fp16, summed in rising k."""
        if self.pipeline.bits == 16:
            return _halves_in_order(q, piece.q)
        found = integer_product(q, piece.q)
        if self.pipeline.bits == 4:
            if self.pipeline.int16_overflow == "saturate":
                return np.clip(found, -32768, 32767).astype(np.int16)
            return ((found + 32768) % 65536 - 32768).astype(np.int16)
        return ((found + 2**31) % 2**32 - 2**31).astype(np.int32)

    def factor(self, scale_a: F32, scale_b: F32) -> F64:
        """(scale A * scale B) / divisor, each step rounded to float32; [M, N]."""
        product = single(scale_a.astype(np.float64)[:, None] * scale_b.astype(np.float64)[None, :])
        return single(product / self.block)


def integer_product(a: NDArray[np.int8], b: NDArray[np.int8]) -> NDArray[np.int64]:
    """a [M, K] times b [N, K] transposed in int64, which numpy sums one by one without a float."""
    wide, found = a.astype(np.int64), np.empty((a.shape[0], b.shape[0]), np.int64)
    step = max(1, _BLOCK // max(1, b.shape[1]))
    for n in range(0, b.shape[0], step):
        found[:, n : n + step] = wide @ b[n : n + step].astype(np.int64).T
    return found


def _halves_in_order(a: NDArray[np.float16], b: NDArray[np.float16]) -> F32:
    """Product and sum each rounded to float32, k after k: the order of the mock (c_probes/mock/src/gemm_float.c)."""
    total = np.zeros((a.shape[0], b.shape[0]))
    for k in range(a.shape[1]):
        product = single(a[:, k].astype(np.float64)[:, None] * b[:, k].astype(np.float64)[None, :])
        total = single(total + product)
    return total.astype(np.float32)


def _rank_one(w: F32, rules: Rules) -> tuple[NDArray[np.int8], F32, F32]:
    """Integers, u of each channel, v of each k: element scale max(v * u, 1e-7) (invisiofficial e8604563)."""
    least = float(np.float32(1e-7))
    size = single(np.abs(w.astype(np.float64)) * float(np.float32(rules.clip)))
    u = np.maximum(single(size.max(axis=1, initial=0.0) / rules.most), least)
    share = single(np.maximum(single(size / rules.most), least) * single(1.0 / u)[:, None])
    v = share.max(axis=0)
    scale = np.maximum(single(v[None, :] * u[:, None]), least)
    q = oracle.narrowed(oracle.nearest(single(w.astype(np.float64) * single(1.0 / scale))), rules)
    return q, u.astype(np.float32), v.astype(np.float32)


def nearest_single(value: Fraction) -> float:
    """A fraction rounded once to float32, ties to even."""
    if value == 0:
        return 0.0
    size, exponent = abs(value), 0
    while size >= Fraction(2) ** (exponent + 1):
        exponent += 1
    while size < Fraction(2) ** exponent:
        exponent -= 1
    place = Fraction(2) ** (max(exponent, -126) - 23)
    steps = round(size / place)  # Fraction.__round__ takes ties to even
    return float(steps * place) * (1 if value > 0 else -1)


def collected(totals: list[float], factors: list[float], fma: bool) -> float:
    """One element of the result: K segments in their order, the first one stored, later ones added."""
    before = 0.0
    for total, factor in zip(totals, factors, strict=True):
        if fma:
            before = nearest_single(Fraction(before) + Fraction(total) * Fraction(factor))
        else:
            before = float(np.float32(before) + np.float32(total) * np.float32(factor))
    return before


def float_bound(oracle_of: WeightOracle, w: F32, x: F32) -> tuple[F64, F64]:
    """x times w in float64 [M, N], and how far a quantised product may be from it.

    |a b - a' b'| <= |a - a'| |b| + |a'| |b - b'|, added up over k with the quantiser's own errors; a hundredth more for
    the float32 arithmetic around it.
    """
    exact = x.astype(np.float64) @ w.astype(np.float64).T
    rows, weight = oracle_of.transformed(x), oracle_of.transformed(w)
    bound = np.zeros_like(exact)
    for piece in oracle_of.pieces:
        q, scale = oracle_of.activation(rows, piece)
        fold = 1.0 if piece.fold is None else piece.fold.astype(np.float64)
        a = rows[:, piece.k0 : piece.k1].astype(np.float64) * fold
        held = q.astype(np.float64) * scale.astype(np.float64)[:, None]
        b = weight[piece.n0 : piece.n1, piece.k0 : piece.k1].astype(np.float64) / fold
        kept = piece.q.astype(np.float64) * piece.scale.astype(np.float64)[:, None]
        columns = slice(piece.n0, piece.n1)
        bound[:, columns] += np.abs(a - held) @ np.abs(b).T + np.abs(held) @ np.abs(b - kept).T
    size = np.abs(x.astype(np.float64)) @ np.abs(w.astype(np.float64)).T
    return exact, 1.01 * bound / oracle_of.block + 1e-5 * size
