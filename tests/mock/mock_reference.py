# SPDX-License-Identifier: Apache-2.0
"""What a right runtime computes, in numpy at 64 bits, and native packing, from the published layout tables.

Nothing here is shared with the mock. Every operand travels as the list of its integer (or fp16) elements; C comes back
in the element type of the matmul type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Kind:
    """One matmul type: element names of A, B and C."""

    code: int
    a: str
    b: str
    c: str


KINDS = {
    kind.code: kind
    for kind in (
        Kind(1, "f16", "f16", "f32"),
        Kind(2, "i8", "i8", "i32"),
        Kind(3, "i8", "i8", "i8"),
        Kind(4, "f16", "f16", "f16"),
        Kind(5, "f16", "i8", "f32"),
        Kind(6, "f16", "i8", "f16"),
        Kind(7, "f16", "i4", "f32"),
        Kind(8, "f16", "i4", "f16"),
        Kind(9, "i8", "i8", "f32"),
        Kind(10, "i4", "i4", "i16"),
        Kind(11, "i8", "i4", "i32"),
        Kind(12, "f16", "i4", "bf16"),
        Kind(15, "i8", "i4", "f16"),
    )
}
TENSOR_CODE = {"f32": 0, "f16": 1, "i8": 2, "i16": 4, "i32": 6, "i4": 10, "bf16": 11}
STORED: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "i8": np.int8, "i16": np.int16, "i32": np.int32, "bf16": np.uint16,
}  # fmt: skip
# RK3588: elements per cell of native A and C, and the n x k tile of native B.
A_CELL = {"i4": 32, "i8": 16, "f16": 8}
C_CELL = {"i32": 4, "f32": 4, "i16": 8, "f16": 8, "bf16": 8, "i8": 16}
B_TILE = {"i4": (64, 32), "i8": (32, 32), "f16": (16, 32)}
SEGMENT = 8192


def data(kind: Kind, M: int, K: int, N: int, seed: int, *, small: bool = False) -> tuple[Array, Array]:
    """Seeded A and B over the full range of their types; ``small``: integers whose every partial sum is exact."""
    random = np.random.default_rng(seed)

    def draw(name: str, shape: tuple[int, int]) -> Array:
        if name == "f16":
            return (random.integers(-3, 4, shape) if small else random.standard_normal(shape)).astype(np.float16)
        low, high = (-3, 4) if small else {"i8": (-128, 128), "i4": (-8, 8)}[name]
        return random.integers(low, high, shape).astype(np.int8)

    return draw(kind.a, (M, K)), draw(kind.b, (K, N))


def pack_nibbles(values: Array) -> Array:
    """Two int4 per byte, the even element in the low half."""
    flat = values.reshape(-1).astype(np.int64) & 15
    return (flat[0::2] | flat[1::2] << 4).astype(np.uint8)


def stored(values: Array, name: str) -> Array:
    return pack_nibbles(values) if name == "i4" else np.ascontiguousarray(values)


def pad(values: Array, rows: int, columns: int) -> Array:
    grown = np.zeros((-(-values.shape[0] // rows) * rows, -(-values.shape[1] // columns) * columns), values.dtype)
    grown[: values.shape[0], : values.shape[1]] = values
    return grown


def pack_a(a: Array, name: str, native: bool, cell: int | None = None) -> Array:
    """A [M,K] as it lies in memory; native is [K/c, M, c]."""
    if not native:
        return stored(a, name)
    cell = cell or A_CELL[name]
    wide = pad(a, 1, cell)
    return stored(wide.reshape(a.shape[0], -1, cell).transpose(1, 0, 2), name)


def pack_b(b: Array, name: str, layout: int, tile: tuple[int, int] | None = None, segment: int = SEGMENT) -> Array:
    """B [K,N] as it lies in memory: row-major, native [N/n, K/k, n, k] segment by segment, or row-major [N,K]."""
    if layout == 0:
        return stored(b, name)
    if layout == 2:
        return stored(b.T, name)
    n, k = tile or B_TILE[name]
    pieces = []
    for start in range(0, b.shape[0], segment):
        part = pad(b[start : start + segment], k, n)
        blocks = part.reshape(part.shape[0] // k, k, part.shape[1] // n, n).transpose(2, 0, 3, 1)
        pieces.append(blocks.reshape(-1))
    return stored(np.concatenate(pieces), name)


def unpack_c(raw: Array, name: str, M: int, N: int, native: bool) -> Array:
    """C [M,N] from the bytes a run left; native is [N/c, M, c]."""
    values: Array = raw.view(STORED[name])
    if not native:
        return np.asarray(values.reshape(M, N))
    return np.asarray(values.reshape(-1, M, C_CELL[name]).transpose(1, 0, 2).reshape(M, -1)[:, :N])


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.uint16]:
    """Nearest bf16, ties to even, by choosing between the two neighbours."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    low = bits & np.uint32(0xFFFF0000)
    high = low + np.uint32(0x10000)
    exact = values.astype(np.float64)
    below = np.abs(exact - low.view(np.float32).astype(np.float64))
    above = np.abs(high.view(np.float32).astype(np.float64) - exact)
    odd = (low >> np.uint32(16)) & np.uint32(1)
    up = (above < below) | ((above == below) & (odd == 1))
    return np.asarray(np.where(up, high, low) >> np.uint32(16), np.uint16)


def product(a: Array, b: Array) -> Array:
    """Exact A x B in int64, or in float64 (exact where the operands are small integers)."""
    wide = np.float64 if np.float16 in (a.dtype, b.dtype) else np.int64
    if wide is np.int64 and a.shape[1] < 2**20:
        # Products are below 2^14, so float64 sums of this length are exact, and BLAS is quick.
        return (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64)
    return np.asarray(a.astype(wide) @ b.astype(wide))


def expected(kind: Kind, total: Array) -> Array:
    """C from the exact product with every scale 1."""
    if kind.c == "i32":
        return total.astype(np.int64).astype(np.int32)
    if kind.c == "i16":
        return np.clip(total, -32768, 32767).astype(np.int16)
    if kind.c == "i8":
        return np.clip(total, -128, 127).astype(np.int8)
    single = total.astype(np.float32)
    if kind.c == "bf16":
        return to_bf16(single)
    with np.errstate(over="ignore"):  # beyond 65504 fp16 is infinite
        return single.astype(np.float16) if kind.c == "f16" else single
