# SPDX-License-Identifier: Apache-2.0
"""What an NPU pipeline computes, said once more number by number. Shares no code with the engine.

Float32 values are Python floats that a float32 can hold. A sum, difference, product or quotient of two such is made in
double and rounded by ``struct``, which is the float32 operation because double has more than twice the digits. Fused
and other exact results go through ``Fraction``.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

INF = float("inf")


def f32(value: float) -> float:
    """Rounded to float32, ties to even."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return INF if value > 0 else -INF


def f32_of_fraction(value: Fraction) -> float:
    """Rounded once to float32, ties to even, subnormal numbers included; no overflow expected."""
    if value == 0:
        return 0.0
    sign, size = (-1 if value < 0 else 1), abs(value)
    exponent = 0
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    while Fraction(2) ** exponent > size:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    steps, rest = divmod(size, unit)
    twice = rest * 2
    if twice > unit or (twice == unit and steps % 2):
        steps += 1
    return sign * float(steps * unit)


def half(value: float) -> float:
    """Rounded to fp16, ties to even; too large is infinity."""
    try:
        return float(struct.unpack("<e", struct.pack("<e", value))[0])
    except OverflowError:
        return INF if value > 0 else -INF


def round_away(value: float) -> int:
    """Nearest integer, halves away from zero."""
    exact = Fraction(value)
    whole = (abs(exact) + Fraction(1, 2)).__floor__()
    return -whole if exact < 0 else whole


@dataclass(frozen=True)
class Rules:
    """The pipeline in words of its own."""

    bits: int
    scale: str
    transform: str
    k_limit: int
    cores: int
    clamp: bool
    fma: bool
    k_align: int
    n_align: int
    overflow: str
    a_clip: float
    b_clip: float
    one_activation_scale: bool = False


def cut_k(k: int, limit: int, align: int) -> list[tuple[int, int]]:
    step = limit // align * align
    if not limit or k <= limit or not step:
        return [(0, k)]
    cuts = [*range(0, k, step), k]
    return list(itertools.pairwise(cuts))


def cut_n(n: int, cores: int, align: int) -> list[tuple[int, int]]:
    """Alignment units dealt out: as many whole ones to each core as fit, the rest one by one from the first core."""
    units = (n + align - 1) // align
    each, more = divmod(units, cores)
    cuts = [0]
    for core in range(cores):
        cuts.append(min(n, cuts[-1] + (each + (core < more)) * align))
    return [(a, b) for a, b in itertools.pairwise(cuts) if b > a]


def transformed(row: Sequence[float], signs: Sequence[int], k_op: int, block: int) -> list[float]:
    """Signs, padding, the Walsh-Hadamard butterflies of each block, each result rounded."""
    values = [f32(value * sign) for value, sign in zip(row, signs, strict=False)] + [0.0] * (k_op - len(row))
    reach = 1
    while reach < block:
        for i in range(k_op):
            if not i & reach:
                a, b = values[i], values[i + reach]
                values[i], values[i + reach] = f32(a + b), f32(a - b)
        reach *= 2
    return values


def to_integer(scaled: float, rules: Rules) -> int:
    most = 127 if rules.bits == 8 else 7
    if math.isnan(scaled):
        whole = 0
    elif abs(scaled) == INF:
        whole = 2**31 - 1 if scaled > 0 else -(2**31)
    else:
        whole = max(-(2**31), min(2**31 - 1, round_away(scaled)))
    if not rules.clamp:
        whole = (whole + 128) % 256 - 128
    return max(-most, min(most, whole)) if rules.clamp or rules.bits == 4 else whole


def inverse(scale: float) -> float:
    return 0.0 if scale == 0 else f32(1 / scale) if 1 / scale < 3.5e38 else INF


def scaled(value: float, factor: float) -> float:
    return f32(value * factor)


def biggest(values: Sequence[float]) -> float:
    return max((abs(value) for value in values), default=0.0)


class Oracle:
    """One weight, rows of float32 values, under some rules."""

    def __init__(self, w: list[list[float]], signs: Sequence[int], rules: Rules) -> None:
        self.rules, self.n, k = rules, len(w), len(w[0])
        self.signs = signs
        self.k_op, self.block = k, 1
        if rules.transform == "padded":
            while self.block < k:
                self.block *= 2
            self.k_op = self.block
        if rules.transform == "block":
            while k % (self.block * 2) == 0:
                self.block *= 2
        if rules.transform != "none":
            w = [transformed(row, signs, self.k_op, self.block) for row in w]
        self.w = w
        self.k_cuts = cut_k(self.k_op, rules.k_limit, rules.k_align)
        self.n_cuts = cut_n(self.n, rules.cores, rules.n_align)
        self.most = 127.0 if rules.bits == 8 else 7.0
        self.cells = [
            (i, k0, k1, n0, n1, *self._quantize(k0, k1, n0, n1))
            for i, (k0, k1) in enumerate(self.k_cuts)
            for n0, n1 in self.n_cuts
        ]

    def _quantize(
        self, k0: int, k1: int, n0: int, n1: int
    ) -> tuple[list[list[float]], list[float], list[float] | None]:
        """Integers (or halves) [n][k], scale of each channel, factors of the activations for rank one."""
        r = self.rules
        part = [row[k0:k1] for row in self.w[n0:n1]]
        if r.bits == 16:
            return [[half(v) for v in row] for row in part], [1.0] * len(part), None
        clip = f32(r.b_clip)
        sizes = [[f32(abs(v) * clip) for v in row] for row in part]
        tops = [biggest(row) for row in sizes]
        if r.scale == "rank-one":
            floor = f32(1e-7)
            u = [max(f32(top / self.most), floor) for top in tops]
            v = [
                max(f32(max(f32(row[j] / self.most), floor) * f32(1 / u[i])) for i, row in enumerate(sizes))
                for j in range(k1 - k0)
            ]
            q = [
                [float(to_integer(f32(w * f32(1 / max(f32(v[j] * u[i]), floor))), r)) for j, w in enumerate(row)]
                for i, row in enumerate(part)
            ]
            return q, u, v
        if r.scale == "segment":
            tops = [max(tops)] * len(tops)
        if r.scale == "tensor":
            tops = [max(f32(biggest(row[a:b]) * clip) for row in self.w for a, b in self.k_cuts) for _ in tops]
        scale = [1.0 if top == 0 else f32(top / self.most) for top in tops]
        q = [[float(to_integer(scaled(w, inverse(s)), r)) for w in row] for row, s in zip(part, scale, strict=True)]
        return q, scale, None

    def __call__(self, x: list[list[float]]) -> list[list[float]]:
        rows = x
        if self.rules.transform != "none":
            rows = [transformed(row, self.signs, self.k_op, self.block) for row in x]
        out = [[0.0] * self.n for _ in rows]
        for i, k0, k1, n0, n1, q, scale, fold in self.cells:
            parts = [row[k0:k1] for row in rows]
            if fold is not None:
                parts = [[f32(a * v) for a, v in zip(part, fold, strict=True)] for part in parts]
            tops = [biggest(part) for part in parts]
            if self.rules.one_activation_scale:
                tops = [max(tops)] * len(tops)
            for m, part in enumerate(parts):
                s_a = 1.0 if self.rules.bits == 16 else f32(f32(f32(self.rules.a_clip) * tops[m]) / self.most)
                a = self._activation(part, s_a)
                for n in range(n0, n1):
                    total = self._sum(a, q[n - n0])
                    factor = f32(f32(s_a * scale[n - n0]) / self.block)
                    out[m][n] = self._add(out[m][n] if i else 0.0, total, factor)
        return out

    def _activation(self, part: list[float], scale: float) -> list[float]:
        if self.rules.bits == 16:
            return [half(v) for v in part]
        return [float(to_integer(scaled(v, inverse(scale)), self.rules)) for v in part]

    def _sum(self, a: list[float], b: list[float]) -> float:
        """As the hardware's C holds it, then as float32."""
        if self.rules.bits == 16:
            total = 0.0
            for left, right in zip(a, b, strict=True):
                total = f32(total + f32(left * right))
            return total
        whole = sum(int(left) * int(right) for left, right in zip(a, b, strict=True))
        if self.rules.bits == 4:
            wraps = (whole + 2**15) % 2**16 - 2**15
            whole = wraps if self.rules.overflow == "wrap" else max(-(2**15), min(2**15 - 1, whole))
        return f32_of_fraction(Fraction(whole))

    def _add(self, before: float, total: float, factor: float) -> float:
        if self.rules.fma:
            return f32_of_fraction(Fraction(total) * Fraction(factor) + Fraction(before))
        return f32(before + f32(total * factor))
