# SPDX-License-Identifier: Apache-2.0
"""How rows of keys and values are stored: f32, f16, q8_0, q4_0, and the rotation that spreads outliers first.

q8_0 and q4_0 are ggml's formats with the rounding of its reference quantiser (ggml-quants.c,
quantize_row_q8_0_ref and quantize_row_q4_0_ref): blocks of 32 values with one f16 scale. Codes and scales stand in
arrays of their own, so that attention reads each without gaps; a row costs the same bytes as in ggml.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from reference_engine.vector_ops_math import F32, f32

Codes: TypeAlias = "npt.NDArray[Any]"
F16: TypeAlias = "npt.NDArray[np.float16]"
BLOCK = 32


@dataclass(frozen=True)
class KvFormat:
    """One storage type: numpy type of a code, values per code, values per scale (0: none); number is the C enum's."""

    name: str
    number: int
    code: type[np.generic]
    values_per_code: int
    values_per_scale: int

    @property
    def quantised(self) -> bool:
        return self.values_per_scale > 0

    def codes(self, n: int) -> int:
        """Codes of a row of n values."""
        return n // self.values_per_code

    def scales(self, n: int) -> int:
        """Scales of a row of n values."""
        return n // self.values_per_scale if self.values_per_scale else 0

    def row_bytes(self, n: int) -> int:
        return self.codes(n) * np.dtype(self.code).itemsize + 2 * self.scales(n)


FORMATS: Mapping[str, KvFormat] = {
    entry.name: entry
    for entry in (
        KvFormat("f32", 0, np.float32, 1, 0),
        KvFormat("f16", 1, np.float16, 1, 0),
        KvFormat("q8_0", 2, np.int8, 1, BLOCK),
        KvFormat("q4_0", 3, np.uint8, 2, BLOCK),
    )
}


def encode(x: F32, kind: KvFormat) -> tuple[Codes, F16]:
    """Codes [..., codes(n)] and scales f16 [..., scales(n)] of rows x [..., n]."""
    with np.errstate(all="ignore"):
        if not kind.quantised:
            return x.astype(kind.code), np.empty((*x.shape[:-1], 0), np.float16)
        blocks = x.reshape(*x.shape[:-1], -1, BLOCK)
        if kind.name == "q8_0":
            codes, scales = _encode_q8_0(blocks)
            return codes.reshape(x.shape), scales
        codes, scales = _encode_q4_0(blocks)
        return codes.reshape(*x.shape[:-1], -1), scales


def _reciprocal(d: F32) -> F32:
    result: F32 = np.where(d == 0, f32(0), f32(1) / d)
    return result


def _encode_q8_0(blocks: F32) -> tuple[Codes, F16]:
    d = np.abs(blocks).max(axis=-1) / f32(127)
    scaled = blocks * _reciprocal(d)[..., None]
    # roundf: halves away from zero. A value that is no number is stored as 0; its block's scale says so.
    magnitude = np.abs(scaled)
    whole = np.floor(magnitude)
    rounded = whole + (magnitude - whole >= f32(0.5)).astype(np.float32)
    rounded = np.where(rounded <= f32(127), rounded, f32(0))
    return np.copysign(rounded, scaled).astype(np.int8), d.astype(np.float16)


def _encode_q4_0(blocks: F32) -> tuple[Codes, F16]:
    # The value of largest magnitude, the first of equals, with its sign; it becomes code 0, that is -8.
    at = np.abs(blocks).argmax(axis=-1)[..., None]
    # ggml starts from +0: a block of zeros of either sign has the scale +0 / -8.
    d = ((np.take_along_axis(blocks, at, axis=-1) + f32(0)) / f32(-8))[..., 0]
    shifted = blocks * _reciprocal(d)[..., None] + f32(8.5)
    shifted = np.where(shifted >= f32(0), np.where(shifted > f32(15), f32(15), shifted), f32(0))
    nibbles = shifted.astype(np.uint8)
    return nibbles[..., :16] | (nibbles[..., 16:] << np.uint8(4)), d.astype(np.float16)


def decode(codes: Codes, scales: F16, kind: KvFormat) -> F32:
    """Rows [..., n] in f32: code times scale, rounded once."""
    if not kind.quantised:
        return codes.astype(np.float32)
    if kind.name == "q4_0":
        pairs = codes.reshape(*codes.shape[:-1], -1, 16)
        nibbles = np.concatenate([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=-1)
        values = nibbles.astype(np.float32) - f32(8)
    else:
        values = codes.reshape(*codes.shape[:-1], -1, BLOCK).astype(np.float32)
    with np.errstate(all="ignore"):
        result: F32 = (values * scales[..., None].astype(np.float32)).reshape(*codes.shape[:-1], -1)
        return result


def rotation_sizes(k_dim: int, v_dim: int, *, uniform: bool) -> tuple[int, int]:
    """Sizes of the Hadamard blocks that llama.cpp applies to rows of K (and Q) and of V; 0 means none.

    K: the largest 64 * 2^n that divides the head; V: 64; both only for heads of a multiple of 64 that are alike
    in all layers (``uniform``). llama-kv-cache.cpp; switched off there by LLAMA_ATTN_ROT_DISABLE.
    """
    if not uniform:
        return 0, 0
    k_block = (k_dim & -k_dim) if k_dim > 0 and k_dim % 64 == 0 else 0
    return k_block, 64 if v_dim > 0 and v_dim % 64 == 0 else 0


def hadamard(x: F32, block: int) -> F32:
    """Each group of ``block`` (a power of two) values of the last axis times the orthonormal Walsh-Hadamard matrix.

    Scaled by 1/sqrt(block) in f32 first, then butterflies of distance 1, 2, 4, ... as ggml's own transform does it.
    The matrix is symmetric and its own inverse.
    """
    y = x.reshape(-1, block) * (f32(1) / f32(math.sqrt(block)))
    step = 1
    while step < block:
        pairs = y.reshape(-1, block // (2 * step), 2, step)
        y = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        step *= 2
    result: F32 = y.reshape(x.shape)
    return result
