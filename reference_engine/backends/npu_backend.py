# SPDX-License-Identifier: Apache-2.0
"""The ``npu`` back end: what the NPU pipelines of the rk-llama.cpp forks compute, bit for bit, on the CPU.

A matmul has three phases, each a method of :class:`NpuBackend` that another back end may replace: ``prepare``,
``products`` (the NPU's own part) and ``collect``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends import native, npu_steps
from reference_engine.backends.float_backend import FloatLinear, LinearList
from reference_engine.backends.integer_product import to_int16
from reference_engine.backends.interface import F32, Counter, Linear, LinearGroup, MatmulRecord, Observer, SegmentRecord
from reference_engine.backends.native import MAX_GROUP, Arena, FusedCall, build_native
from reference_engine.backends.npu_steps import PreparedA
from reference_engine.backends.npu_weight import NpuWeight, build_weight
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.presets import has_route, route_tensor
from reference_engine.backends.shapes import check_input, result_array

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary


def _nothing() -> None:
    """What a reference gives before there is one."""


class NpuLinear:
    """One weight in one pipeline."""

    def __init__(self, weight: NpuWeight, backend: NpuBackend, counter: Counter) -> None:
        self.weight, self._backend, self.counter = weight, backend, counter
        self.name, self.n_in, self.n_out = weight.name, weight.n_in, weight.n_out
        self.where = backend.where
        self._fused = FusedCall([weight], [counter], backend.threads) if backend.fuses(weight) else None
        # Weak: of a large batch the head's result may be larger than the model.
        self._last_x: F32 | None = None
        self._last_out: Callable[[], F32 | None] = _nothing

    def __call__(self, x: F32, out: F32 | None = None) -> F32:
        """x [M, K] -> [M, N]. NonFinite for NaN or infinity in x."""
        fused, known = self._fused, x is self._last_x and out is not None and self._last_out() is out
        if known and fused is not None and out is not None and self._backend.observer is None:
            # The scratch arrays of the token before: checked then, and their pointers are known.
            fused.again()
            return out
        check_input(self.name, x, self.n_in)
        y = result_array(self.name, out, x.shape[0], self.n_out)
        if fused is not None and self._backend.observer is None:
            fused(x, (y,))
            self._last_x, self._last_out = x, weakref.ref(y)
        else:
            self._backend.multiply(self.weight, x, y, self.counter)
        return y


class NpuGroup:
    """Weights that take the same prepared activation: quantised once, one C call for all."""

    def __init__(self, members: Sequence[NpuLinear], backend: NpuBackend, fused: FusedCall) -> None:
        self.members: tuple[Linear, ...] = tuple(members)
        self._backend, self._fused, self._first = backend, fused, members[0]
        self._shapes = [(member.name, member.n_out) for member in members]
        self._last: tuple[F32, tuple[F32, ...]] | tuple[None, None] = (None, None)
        self._last_ys: tuple[F32, ...] = ()

    def __call__(self, x: F32, outs: Sequence[F32] | None = None) -> tuple[F32, ...]:
        """x [M, K] -> one [M, N] per member, into ``outs`` where given. NonFinite for NaN or infinity in x."""
        if x is self._last[0] and outs is self._last[1] and self._backend.observer is None:
            self._fused.again()
            return self._last_ys
        given = outs or (None,) * len(self.members)
        if self._backend.observer is not None:
            return tuple(member(x, out) for member, out in zip(self.members, given, strict=True))
        check_input(self._first.name, x, self._first.n_in)
        m = x.shape[0]
        ys = tuple([result_array(name, out, m, n) for (name, n), out in zip(self._shapes, given, strict=True)])
        self._fused(x, ys)
        if isinstance(outs, tuple):  # which stays as it is
            self._last, self._last_ys = (x, outs), ys
        return ys


class NpuBackend:
    """Routes weights by its pipeline; those that stay on the CPU are made in float."""

    where = "npu"

    def __init__(self, pipeline: Pipeline, kernels: KernelLibrary | None, threads: int) -> None:
        self.pipeline, self.kernels, self.threads = pipeline, kernels, threads
        self.name = f"{self.where}:{pipeline.name}"
        self.observer: Observer | None = None
        self._counters: dict[str, Counter] = {}
        self._arena = Arena(kernels) if kernels is not None else None
        self._sequence: dict[str, int] = {}
        self._float = _Inner(self)

    @property
    def counters(self) -> Mapping[str, Counter]:
        return self._counters

    def linear(self, tensor: GgufTensor) -> Linear:
        """NonFinite where the weight holds NaN or infinity; SignsError where a sign vector is missing."""
        sequence = 0
        if has_route(self.pipeline, tensor.type.name):
            sequence = self._sequence.setdefault(tensor.name, len(self._sequence))
        chosen = route_tensor(self.pipeline, tensor.type.name, tensor.dims, sequence)
        if chosen is None:
            return FloatLinear(tensor, self._float)
        counter = self._counters.setdefault(tensor.name, Counter())
        return NpuLinear(self.build(tensor, chosen), self, counter)

    def group(self, tensors: Sequence[GgufTensor]) -> LinearGroup:
        """One activation for all members where the pipeline allows it; signs and rank-one factors are of one weight."""
        members = [self.linear(tensor) for tensor in tensors]
        own = [member for member in members if isinstance(member, NpuLinear)]
        if len(own) == len(members) <= MAX_GROUP and all(self.fuses(member.weight) for member in own):
            first = own[0].weight
            if all(_shares(first, member.weight) for member in own):
                call = FusedCall([m.weight for m in own], [m.counter for m in own], self.threads)
                return NpuGroup(own, self, call)
        return LinearList(members)

    def build(self, tensor: GgufTensor, pipeline: Pipeline) -> NpuWeight:
        """Quantise a weight."""
        if self._arena is not None:
            return build_native(tensor, pipeline, self._arena, self.threads)
        return build_weight(tensor, pipeline)

    def fuses(self, weight: NpuWeight) -> bool:
        """Whether one C call makes the whole product: not where the second phase is made elsewhere."""
        return self.where == "npu" and weight.native is not None and weight.pipeline.activation_scale == "row"

    def multiply(self, weight: NpuWeight, x: F32, out: F32, counter: Counter) -> None:
        """out = x times the weight, by the three phases."""
        prepared = self.prepare(weight, x, counter)
        sums = self.products(weight, prepared)
        self.collect(weight, prepared, sums, out)
        if self.observer is not None:
            self.observer(record(weight, x, prepared, sums, out))

    def prepare(self, weight: NpuWeight, x: F32, counter: Counter) -> list[PreparedA]:
        """Phase 1: one prepared activation for each of ``weight.activations``."""
        if weight.native is None or weight.pipeline.activation_scale != "row":
            return npu_steps.prepare_a(weight, x, counter)
        return [PreparedA(q, scale) for q, scale in native.prepare(weight, x, counter, self.threads)]

    def products(self, weight: NpuWeight, prepared: Sequence[PreparedA]) -> list[NDArray[Any]]:
        """Phase 2: for each segment the sums as the hardware's C holds them."""
        if weight.native is None:
            return [npu_steps.run(weight, i, prepared[s.activation].q) for i, s in enumerate(weight.segments)]
        return native_products(weight, prepared, self.threads)

    def collect(self, weight: NpuWeight, prepared: Sequence[PreparedA], sums: Sequence[NDArray[Any]], out: F32) -> None:
        """Phase 3: scaled sums added up in ``out``."""
        if weight.native is None:
            npu_steps.collect(weight, prepared, sums, out)
            return
        for segment, total in zip(weight.segments, sums, strict=True):
            native.collect(weight, segment, total, prepared[segment.activation].scale, out, threads=self.threads)

    def close(self) -> None:
        """Nothing outlives the object."""


def _shares(a: NpuWeight, b: NpuWeight) -> bool:
    """Whether both take the same prepared activation."""
    plain = a.signs is None and b.signs is None and "rank-one" not in (a.pipeline.weight_scale, b.pipeline.weight_scale)
    same = replace(a.pipeline, name="") == replace(b.pipeline, name="")
    return a is b or (plain and same and a.n_in == b.n_in)


def native_products(weight: NpuWeight, prepared: Sequence[PreparedA], threads: int) -> list[NDArray[Any]]:
    """Phase 2 in C. Segments of one activation are columns of one product."""
    found: list[NDArray[Any]] = []
    for a in weight.activations:
        own = [s for s in weight.segments if s.activation == a.activation]
        start, end = own[0].n0, own[-1].n1
        sums = native.sums(weight, a.activation, prepared[a.activation].q, end - start, threads)
        held = to_int16(sums, weight.pipeline.int16_overflow) if weight.pipeline.bits == 4 else sums
        found.extend(np.ascontiguousarray(held[:, s.n0 - start : s.n1 - start]) for s in own)
    return found


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
