# SPDX-License-Identifier: Apache-2.0
"""Weights made of arrays, as a back end takes them from a file, and both back ends run on one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends import MatmulRecord
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.presets import parse_pipeline
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.gguf_types import TENSOR_TYPES, TensorType

F32 = NDArray[np.float32]


@dataclass
class ArrayTensor:
    """A float32 weight [N, K] under a name; the parts of GgufTensor that a back end reads."""

    name: str
    values: F32
    type: TensorType = TENSOR_TYPES[0]

    @property
    def dims(self) -> tuple[int, ...]:
        return self.values.shape[::-1]

    @property
    def row_elements(self) -> int:
        return int(self.values.shape[1])

    @property
    def n_rows(self) -> int:
        return int(self.values.shape[0])

    def row_blocks(self) -> Iterator[tuple[int, F32]]:
        step = max(1, self.n_rows // 3)
        for start in range(0, self.n_rows, step):
            yield start, self.values[start : start + step]


def tensor(name: str, N: int, K: int, seed: int = 1) -> GgufTensor:
    """Weights with a few large ones, as real ones have them."""
    rng = np.random.default_rng([seed, N, K])
    values = rng.standard_normal((N, K)) * np.exp(rng.standard_normal((N, 1)))
    return cast(GgufTensor, ArrayTensor(name, values.astype(np.float32)))


def activations(M: int, K: int, seed: int = 2) -> F32:
    rng = np.random.default_rng([seed, M, K])
    return (rng.standard_normal((M, K)) * np.exp(2 * rng.standard_normal((M, 1)))).astype(np.float32)


def npu(text: str) -> NpuBackend:
    return NpuBackend(parse_pipeline(text), None, 1)


def bits(values: NDArray[Any]) -> NDArray[np.uint32]:
    return values.view(np.uint32)


def records_of(backend: NpuBackend) -> list[MatmulRecord]:
    """A list that grows with each matmul."""
    seen: list[MatmulRecord] = []
    backend.observer = seen.append
    return seen
