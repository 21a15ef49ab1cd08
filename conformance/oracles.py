# SPDX-License-Identifier: Apache-2.0
"""What a right matmul gives, in integers of 64 bits and doubles. Pure numpy; shares no code with what it judges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

FP32_UNIT = 1 << 24
"""The relative error of one rounding to fp32 is 1 of this."""

EXACT_IN_DOUBLE = 1 << 53
"""Integers below it are doubles."""


def exact_product(a: Array, b: Array) -> Array:
    """A[M,K] x B[K,N] of integers as int64. numpy multiplies int8 in int8 and wraps (numpy issue 16150): never here."""
    largest = a.shape[1] * _magnitude(a) * _magnitude(b)
    if largest < EXACT_IN_DOUBLE:
        # Every partial sum is an integer that a double holds, in any order; a BLAS is much faster than integers are.
        return np.asarray((a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64))
    return np.asarray(a.astype(np.int64) @ b.astype(np.int64))


def _magnitude(values: Array) -> int:
    return max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0


def wrapped(values: Array, bits: int) -> Array:
    """Integers modulo 2^bits, read as signed."""
    half = 1 << (bits - 1)
    return np.asarray((values + half) % (1 << bits) - half)


def saturated(values: Array, bits: int) -> Array:
    """Integers held within the range of a signed type of ``bits``."""
    return np.asarray(np.clip(values, -(1 << (bits - 1)), (1 << (bits - 1)) - 1))


def reduction_bound(a: Array, b: Array, *, half_output: bool = False) -> Array:
    """Largest error of fp32 sums over K in any order: gamma_K times |A| x |B|, gamma_K = K u / (1 - K u), u = 2^-24.

    Products of two fp16 are exact in fp32. An fp16 output adds half a unit in its last place (2^-11 relative, at
    least 2^-25). A comparison with the unrounded inputs would blame fp16 itself (rknn-toolkit2 issue 471).
    """
    K = a.shape[1]
    wide = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    bound = wide * (K / (FP32_UNIT - K))
    if half_output:
        exact = np.abs(a.astype(np.float64) @ b.astype(np.float64))
        bound = bound + (exact + bound) * 2.0**-11 + 2.0**-25
    return np.asarray(bound)


def grouped_product(a: Array, b: Array, scale: Array) -> Array:
    """Sum over groups of K of scale[g, n] times the exact partial sum; ``scale`` is [K/group, N]. Float64."""
    groups = scale.shape[0]
    size = a.shape[1] // groups
    parts = [
        exact_product(a[:, g * size : (g + 1) * size], b[g * size : (g + 1) * size]) * scale[g].astype(np.float64)
        for g in range(groups)
    ]
    return np.asarray(np.sum(parts, axis=0))


def requantised(sums: Array, scale: Array | float) -> tuple[Array, Array]:
    """int8 of ``sums * scale``: rounded down and up at a half, both saturated. Between them lies every right rounding.

    Whether a tie goes to even, away or up has no source; elements that are no tie are the same in both.
    """
    exact = sums.astype(np.float64) * scale
    low, high = np.ceil(exact - 0.5), np.floor(exact + 0.5)
    return saturated(low, 8).astype(np.int64), saturated(high, 8).astype(np.int64)


def nibbles(values: Array) -> Array:
    """int4 packed two per byte, the even element in the low half (demo of runtime 2.0.0-beta0 and later)."""
    pairs = values.reshape(-1, 2).astype(np.int64) & 15
    return np.asarray(pairs[:, 0] + 16 * pairs[:, 1], np.uint8)


def native_a(a: Array, cell: int) -> Array:
    """A [M,K] as [K/cell, M, cell] (user guide 2.3.0, table 3-5)."""
    M, K = a.shape
    return np.ascontiguousarray(a.reshape(M, K // cell, cell).transpose(1, 0, 2))


def native_b(b: Array, sub_n: int, sub_k: int) -> Array:
    """B [K,N] as [N/sub_n, K/sub_k, sub_n, sub_k] (user guide 2.3.0, table 3-5)."""
    K, N = b.shape
    return np.ascontiguousarray(b.reshape(K // sub_k, sub_k, N // sub_n, sub_n).transpose(2, 0, 3, 1))


def from_native_c(c: Array) -> Array:
    """C of [N/cell, M, cell] as [M, N]."""
    cells, M, cell = c.shape
    return np.ascontiguousarray(c.transpose(1, 0, 2).reshape(M, cells * cell))


def random_int8(random: np.random.Generator, shape: tuple[int, int], _side: int) -> Array:
    """Every value of the type."""
    return random.integers(-128, 128, shape, dtype=np.int8)


def extremes_int8(random: np.random.Generator, shape: tuple[int, int], side: int) -> Array:
    """127 and -128 so paired that sums are as large as they can be: one sign for a row of A, one for a column of B."""
    lines = random.integers(0, 2, shape[side], dtype=np.int8)
    values = np.where(lines == 1, 127, -128).astype(np.int8)
    return np.ascontiguousarray(np.broadcast_to(values[:, None] if side == 0 else values[None, :], shape))


def single_hot_int8(random: np.random.Generator, shape: tuple[int, int], side: int) -> Array:
    """A has one value per row, B is random: each sum is one product, so a lost or moved K shows."""
    if side == 1:
        return random_int8(random, shape, side)
    hot = np.zeros(shape, np.int8)
    hot[np.arange(shape[0]), random.integers(0, shape[1], shape[0])] = 127
    return hot


def alternating_int8(random: np.random.Generator, shape: tuple[int, int], side: int) -> Array:
    """127 and -127 in turn along K on both sides, rows and columns shifted by chance: sums are huge or near 0."""
    K = shape[1 - side]
    sign = np.where(np.arange(K) % 2 == 0, 127, -127).astype(np.int8)
    shift = random.integers(0, 2, shape[side])
    lines = np.stack([np.roll(sign, int(by)) for by in shift])
    return np.ascontiguousarray(lines if side == 0 else lines.T)


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int], int], Array]] = {
    "random": random_int8,
    "extremes": extremes_int8,
    "single hot": single_hot_int8,
    "alternating": alternating_int8,
}
"""Operands by name; the last argument is the side: 0 for A [M,K], 1 for B [K,N]."""
