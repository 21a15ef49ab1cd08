# SPDX-License-Identifier: Apache-2.0
"""The engine's quantiser as the checks reach it: through a back end, as a model does."""

from __future__ import annotations

import mmap
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.quantiser.oracle import F32, Rules
from reference_engine.backends.interface import Counter
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.npu_weight import NpuWeight
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.presets import PRESETS
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.gguf_types import TENSOR_TYPES

_F32_TYPE = 0  # ggml's number


def crafted_tensor(values: F32, name: str = "crafted") -> GgufTensor:
    """values [N, K] as an F32 tensor without a file."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint8)
    mapped = mmap.mmap(-1, max(1, raw.nbytes))
    mapped[: raw.nbytes] = raw.tobytes()
    kind = TENSOR_TYPES[_F32_TYPE]
    return GgufTensor(name, values.shape[::-1], kind, raw.nbytes, 0, 0, Path("crafted"), mapped)


def pipeline_for(rules: Rules, **settings: Any) -> Pipeline:
    """A pipeline of these rules for activations, with one scale per channel for weights."""
    preset = PRESETS["w8a8-per-channel" if rules.most == 127 else "w4a4"]
    return replace(preset, clamp=rules.clamp, a_clip=rules.clip, b_clip=rules.clip, **settings)


class Quantised(NamedTuple):
    """Integers [rows, K], scales [rows]; ``beyond`` as the back end counted it (0 for weights, which it does not)."""

    q: NDArray[Any]
    scale: F32
    beyond: int


class Subject:
    """A back end whose first phase is looked at."""

    def __init__(self, backend: NpuBackend, label: str) -> None:
        self.backend, self.label = backend, label
        self._weights: dict[tuple[int, Pipeline], NpuWeight] = {}

    def activations(self, x: F32, pipeline: Pipeline) -> Quantised:
        """x [M, K] as the activation of a weight [32, K] that is all 1."""
        weight = self._weight(x.shape[1], pipeline)
        counter = Counter()
        (prepared,) = self.backend.prepare(weight, np.ascontiguousarray(x, np.float32), counter)
        return Quantised(prepared.q, prepared.scale, counter.clipped)

    def weights(self, w: F32, pipeline: Pipeline) -> Quantised:
        """w [N, K] as a weight, its core slices put together. One K segment is expected."""
        weight = self.backend.build(crafted_tensor(w), pipeline)
        q = np.concatenate([weight.quantized(index) for index in range(len(weight.segments))])
        return Quantised(q, np.concatenate([segment.scale for segment in weight.segments]), 0)

    def product(self, x: F32, w: F32, pipeline: Pipeline) -> F32:
        """x [M, K] times w [N, K] transposed, through all phases."""
        weight = self.backend.build(crafted_tensor(w), pipeline)
        out = np.empty((x.shape[0], w.shape[0]), np.float32)
        self.backend.multiply(weight, np.ascontiguousarray(x, np.float32), out, Counter())
        return out

    def _weight(self, K: int, pipeline: Pipeline) -> NpuWeight:
        key = (K, pipeline)
        if key not in self._weights:
            self._weights[key] = self.backend.build(crafted_tensor(np.ones((32, K), np.float32)), pipeline)
        return self._weights[key]
