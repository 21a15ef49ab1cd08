# SPDX-License-Identifier: Apache-2.0
"""Tensors without a file: bytes in an anonymous mapping."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.gguf_tensor import GgufTensor
from reference_engine.gguf_types import TENSOR_TYPES

NUMBERS = {row.name: row.number for row in TENSOR_TYPES.values()}


def tensor_of_bytes(raw: NDArray[np.uint8], type_name: str, k: int, name: str = "blk.0.test.weight") -> GgufTensor:
    """raw uint8 [n, row bytes] as a tensor of dims (k, n)."""
    mapped = mmap.mmap(-1, max(1, raw.nbytes))
    mapped[: raw.nbytes] = raw.tobytes()
    kind = TENSOR_TYPES[NUMBERS[type_name]]
    return GgufTensor(name, (k, raw.shape[0]), kind, raw.nbytes, 0, 0, Path("crafted.gguf"), mapped)


def float_tensor(w: NDArray[np.float32], name: str = "blk.0.test.weight") -> GgufTensor:
    """w [n, k] as an F32 tensor."""
    return tensor_of_bytes(np.ascontiguousarray(w).view(np.uint8), "F32", w.shape[1], name)


def random_tensor(rng: np.random.Generator, type_name: str, k: int, n: int, name: str = "x") -> GgufTensor:
    """Random bytes as a tensor whose numbers are finite: the fp16 scales of the block types get a moderate exponent."""
    kind = TENSOR_TYPES[NUMBERS[type_name]]
    blocks = rng.integers(0, 256, (n * k // kind.block_elements, kind.block_bytes), dtype=np.uint8)
    for at in SCALES_AT.get(type_name, ()):
        half = np.asarray(rng.uniform(0.01, 0.11, blocks.shape[0]), np.float16)
        blocks[:, at : at + 2] = half.view(np.uint8).reshape(-1, 2)
    if type_name == "MXFP4":
        blocks[:, 0] = rng.integers(115, 125, blocks.shape[0])
    if type_name in ("F32", "BF16", "F16"):
        blocks = plain_floats(rng, type_name, n * k)
    return tensor_of_bytes(blocks.reshape(n, -1), type_name, k, name)


def plain_floats(rng: np.random.Generator, type_name: str, count: int) -> NDArray[np.uint8]:
    values = rng.standard_normal(count).astype(np.float32)
    if type_name == "BF16":
        upper: NDArray[Any] = (values.view(np.uint32) >> 16).astype(np.uint16)
        return upper.view(np.uint8)
    return values.astype({"F32": np.float32, "F16": np.float16}[type_name]).view(np.uint8)


# Where each block holds fp16 scales (ggml-common.h).
SCALES_AT: dict[str, tuple[int, ...]] = {
    "Q4_0": (0,),
    "Q4_1": (0, 2),
    "Q5_0": (0,),
    "Q5_1": (0, 2),
    "Q8_0": (0,),
    "Q2_K": (80, 82),
    "Q3_K": (108,),
    "Q4_K": (0, 2),
    "Q5_K": (0, 2),
    "Q6_K": (208,),
    "IQ4_NL": (0,),
    "IQ4_XS": (0,),
    "TQ2_0": (64,),
}
