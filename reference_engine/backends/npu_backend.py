# SPDX-License-Identifier: Apache-2.0
"""The ``npu`` back end: what the NPU pipelines of the rk-llama.cpp forks compute, bit for bit, on the CPU.

A matmul has three phases, each a method of :class:`NpuBackend` that another back end may replace: ``prepare``,
``products`` (the NPU's own part) and ``collect``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from reference_engine.backends import npu_steps
from reference_engine.backends.float_backend import FloatLinear, LinearList
from reference_engine.backends.interface import F32, Counter, Linear, LinearGroup, MatmulRecord, Observer, SegmentRecord
from reference_engine.backends.npu_steps import PreparedA
from reference_engine.backends.npu_weight import NpuWeight, build_weight
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.presets import has_route, route_tensor
from reference_engine.backends.shapes import check_input, result_array

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary


class NpuLinear:
    """One weight in one pipeline."""

    def __init__(self, weight: NpuWeight, backend: NpuBackend, counter: Counter) -> None:
        self.weight, self._backend, self.counter = weight, backend, counter
        self.name, self.n_in, self.n_out = weight.name, weight.n_in, weight.n_out
        self.where = backend.where

    def __call__(self, x: F32, out: F32 | None = None) -> F32:
        """x [M, K] -> [M, N]. NonFinite for NaN or infinity in x."""
        check_input(self.name, x, self.n_in)
        y = result_array(self.name, out, x.shape[0], self.n_out)
        self._backend.multiply(self.weight, x, y, self.counter)
        return y


class NpuBackend:
    """Routes weights by its pipeline; those that stay on the CPU are made in float."""

    where = "npu"

    def __init__(self, pipeline: Pipeline, kernels: KernelLibrary | None, threads: int) -> None:
        self.pipeline, self.kernels, self.threads = pipeline, kernels, threads
        self.name = f"{self.where}:{pipeline.name}"
        self.observer: Observer | None = None
        self._counters: dict[str, Counter] = {}
        self._sequence: dict[str, int] = {}
        self._float = _Inner(self)

    @property
    def counters(self) -> Mapping[str, Counter]:
        return self._counters

    def linear(self, tensor: GgufTensor) -> Linear:
        """NonFinite where the weight holds NaN or infinity; ValueError where a sign vector is missing."""
        sequence = 0
        if has_route(self.pipeline, tensor.type.name):
            sequence = self._sequence.setdefault(tensor.name, len(self._sequence))
        chosen = route_tensor(self.pipeline, tensor.type.name, tensor.dims, sequence)
        if chosen is None:
            return FloatLinear(tensor, self._float)
        counter = self._counters.setdefault(tensor.name, Counter())
        return NpuLinear(self.build(tensor, chosen), self, counter)

    def group(self, tensors: Sequence[GgufTensor]) -> LinearGroup:
        return LinearList([self.linear(tensor) for tensor in tensors])

    def build(self, tensor: GgufTensor, pipeline: Pipeline) -> NpuWeight:
        """Quantise a weight."""
        return build_weight(tensor, pipeline)

    def multiply(self, weight: NpuWeight, x: F32, out: F32, counter: Counter) -> None:
        """out = x times the weight, by the three phases."""
        prepared = self.prepare(weight, x, counter)
        sums = self.products(weight, prepared)
        self.collect(weight, prepared, sums, out)
        if self.observer is not None:
            self.observer(record(weight, x, prepared, sums, out))

    def prepare(self, weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
        """Phase 1: one prepared activation for each of ``weight.activations``."""
        return npu_steps.prepare_a(weight, x, counter)

    def products(self, weight: NpuWeight, prepared: Sequence[PreparedA]) -> list[NDArray[Any]]:
        """Phase 2: for each segment the sums as the hardware's C holds them."""
        return [npu_steps.run(weight, i, prepared[s.activation].q) for i, s in enumerate(weight.segments)]

    def collect(self, weight: NpuWeight, prepared: Sequence[PreparedA], sums: Sequence[NDArray[Any]], out: F32) -> None:
        """Phase 3: scaled sums added up in ``out``."""
        npu_steps.collect(weight, prepared, sums, out)

    def close(self) -> None:
        """Nothing outlives the object."""


class _Inner:
    """What the float layers of an NPU back end see of it: its observer at the moment of the call."""

    def __init__(self, outer: NpuBackend) -> None:
        self._outer = outer
        self.kernels, self.threads = outer.kernels, outer.threads

    @property
    def observer(self) -> Observer | None:
        return self._outer.observer


def record(
    weight: NpuWeight, x: F32, prepared: Sequence[PreparedA], sums: Sequence[NDArray[Any]], y: F32
) -> MatmulRecord:
    """One call as an observer sees it."""
    segments = tuple(
        SegmentRecord(s.k0, s.k1, s.n0, s.n1, prepared[s.activation].q, prepared[s.activation].scale, sums[i], s.scale)
        for i, s in enumerate(weight.segments)
    )
    return MatmulRecord(weight.name, x, y, segments)
