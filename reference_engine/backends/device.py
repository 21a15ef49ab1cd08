# SPDX-License-Identifier: Apache-2.0
"""The ``device`` back end: prepare A and collect C as ``npu`` does, the products by librknnrt in a child.

    device:w8a8-per-channel,library=/usr/lib/librknnrt.so,verify=on

Parameters of its own beside the pipeline's: ``library``; ``verify`` (each product is compared with the emulation's, and
the first wrong one stops the run with the matmul's name); ``deadline`` in seconds for one matmul; ``domains``, how many
IOMMU domains may be filled (1: kernel panics were reported with several); ``contexts`` shared or per-weight. The
weights lie in memory twice: on the device, and in this process, where the first and the third phase need their scales.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends.device_library import (
    DeviceLibrary,
    NoLibrary,
    device_environment,
    find_device_library,
)
from reference_engine.backends.device_phases import PhaseLog, Spent
from reference_engine.backends.device_session import DeviceError, DeviceSession, Piece, Product, SessionOptions
from reference_engine.backends.device_settings import DeviceSettings, parse_device
from reference_engine.backends.interface import F32, Counter
from reference_engine.backends.npu_backend import NpuBackend, record
from reference_engine.backends.npu_steps import PreparedA
from reference_engine.backends.npu_weight import NpuWeight
from reference_engine.backends.pipeline import Pipeline, PipelineError
from reference_engine.npu_plan import DOMAIN_BYTES
from reference_engine.npu_segments import bucket_rows, round_up

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary

__all__ = ["DeviceBackend", "DeviceError", "make_device_backend"]


@dataclass(frozen=True)
class Loaded:
    """A weight in device memory: its number there, and whether each piece has an activation of its own."""

    number: int
    weight: NpuWeight


class DeviceBackend(NpuBackend):
    """Takes the NPU for itself until it is closed. DeviceError for everything that goes wrong there."""

    where = "device"

    def __init__(
        self, pipeline: Pipeline, settings: DeviceSettings, library: DeviceLibrary, kernels: KernelLibrary | None,
        threads: int, *, env: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(pipeline, kernels, threads)
        self.library, self._settings = library, settings
        self.phases = PhaseLog(simulated=library.simulated, note=library.note)
        self._loaded: dict[int, Loaded] = {}
        self._filled = [0] * settings.domains
        environment = device_environment(
            os.environ if env is None else env, library, int16=pipeline.int16_overflow, threads=threads
        )
        options = SessionOptions(
            library.path,
            device_present=library.device_present,
            force=library.named,
            deadline_s=settings.deadline_s,
            one_core=pipeline.cores == 1,
            per_weight=settings.per_weight,
        )
        self._session = DeviceSession(options, environment)

    @property
    def simulated(self) -> bool:
        """Whether no NPU answers: the figures are then a CPU's."""
        return self.library.simulated

    @property
    def note(self) -> str | None:
        """The sentence to print with everything where ``simulated``, else None."""
        return self.library.note

    def build(self, tensor: GgufTensor, pipeline: Pipeline) -> NpuWeight:
        """Quantise a weight and bring it into device memory. DeviceError where it does not fit or is refused."""
        weight = super().build(tensor, pipeline)
        pieces = [_piece(weight, index) for index in range(len(weight.segments))]
        domain = self._domain(weight.name, sum(piece.n_bytes for piece in pieces))
        number = len(self._loaded)
        self._session.load(weight.name, number, pipeline.activation, domain, pieces)
        self._loaded[id(weight)] = Loaded(number, weight)  # the weight is kept, so its id stays its own
        return weight

    def multiply(self, weight: NpuWeight, x: F32, out: F32, counter: Counter) -> None:
        """out = x times the weight; the time of each phase is kept."""
        start = perf_counter_ns()
        prepared = self.prepare(weight, x, counter)
        ready = perf_counter_ns()
        sums, inside = self._on_device(weight, prepared)
        done = perf_counter_ns()
        self.collect(weight, prepared, sums, out)
        spent = Spent(ready - start, done - ready, perf_counter_ns() - done, inside)
        self.phases.add(weight.name, x.shape[0], spent)
        if self.observer is not None:
            self.observer(record(weight, x, prepared, sums, out))

    def products(self, weight: NpuWeight, prepared: Sequence[PreparedA]) -> list[NDArray[Any]]:
        """Phase 2 by librknnrt."""
        return self._on_device(weight, prepared)[0]

    def phase_report(self) -> dict[str, Any]:
        """Shares of prepare A, run and collect C, for prefill (M > 1) and decode (M = 1), and by weight."""
        return self.phases.report()

    def close(self) -> None:
        """End the child and give the NPU back."""
        self._session.close()

    def _on_device(
        self, weight: NpuWeight, prepared: Sequence[PreparedA]
    ) -> tuple[list[NDArray[Any]], tuple[int, int, int]]:
        number = self._loaded[id(weight)].number
        rows = prepared[0].q.shape[0]
        tiles = bucket_rows(rows, weight.pipeline.m_bucket)
        sums: list[NDArray[Any]] = []
        inside = [0, 0, 0]
        for k_index in dict.fromkeys(segment.k_index for segment in weight.segments):
            own = [i for i, segment in enumerate(weight.segments) if segment.k_index == k_index]
            activations = dict.fromkeys(weight.segments[i].activation for i in own)
            inputs = [prepared[activation].q for activation in activations]
            columns = sum(weight.segments[i].n1 - weight.segments[i].n0 for i in own)
            product = Product(weight.name, number, k_index, weight.pipeline.activation, columns)
            answer = self._session.run(product, inputs, tiles)
            if answer.sums.dtype == np.float32:
                _check_finite(product, inputs, answer.sums)
            for i in own:
                segment = weight.segments[i]
                sums.append(answer.sums[:, segment.n0 : segment.n1].copy())
            spent = (answer.prepare_ns, answer.run_ns, answer.collect_ns)
            inside = [before + more for before, more in zip(inside, spent, strict=True)]
        if self._settings.verify:
            expected = super().products(weight, prepared)
            for i, found in enumerate(sums):
                self._check(weight, i, found, expected[i])
        return sums, (inside[0], inside[1], inside[2])

    def _check(self, weight: NpuWeight, index: int, found: NDArray[Any], expected: NDArray[Any]) -> None:
        wrong = np.argwhere(found.view(np.uint8) != expected.view(np.uint8))
        if not wrong.size:
            return
        segment = weight.segments[index]
        row, column = int(wrong[0][0]), int(wrong[0][1]) // found.dtype.itemsize
        differing = int(np.count_nonzero(found != expected))
        raise DeviceError(
            f"{weight.name}, K segment {segment.k_index}, columns {segment.n0} to {segment.n1}, M={found.shape[0]}: "
            f"the device's product is wrong in {differing} of {found.size} elements; first row {row}, column "
            f"{segment.n0 + column}: {found[row, column]} instead of {expected[row, column]}"
        )

    def _domain(self, name: str, size: int) -> int:
        for domain, filled in enumerate(self._filled):
            if filled + size <= DOMAIN_BYTES:
                self._filled[domain] += size
                return domain
        raise DeviceError(
            f"{name}: its {size:,} bytes no longer fit into {len(self._filled)} IOMMU domain(s) of "
            f"{DOMAIN_BYTES:,} bytes; run fewer layers, or allow more with domains=N"
        )


def make_device_backend(
    text: str, *, kernels: KernelLibrary | None, threads: int, env: Mapping[str, str] | None = None
) -> DeviceBackend:
    """``PRESET[,key=value...]``. PipelineError for a wrong text or where no library can be called, DeviceError."""
    pipeline, settings = parse_device(text)
    try:
        library = find_device_library(settings.library)
    except NoLibrary as error:
        raise PipelineError(str(error)) from None
    return DeviceBackend(pipeline, settings, library, kernels, threads, env=env)


def _check_finite(product: Product, inputs: Sequence[NDArray[Any]], sums: NDArray[Any]) -> None:
    """DeviceError for NaN or infinity out of finite halves: float32 sums of their products cannot overflow."""
    wrong = np.argwhere(~np.isfinite(sums))
    if wrong.size and all(np.isfinite(q).all() for q in inputs):
        row, column = wrong[0]
        raise DeviceError(
            f"{product.name}, K segment {product.k_index}, M={sums.shape[0]}: the device's product holds NaN or "
            f"infinity at row {row}, column {column}, and neither the weight nor the activation does"
        )


def _piece(weight: NpuWeight, index: int) -> Piece:
    segment, pipeline = weight.segments[index], weight.pipeline
    n, k = round_up(segment.n1 - segment.n0, pipeline.n_align), round_up(segment.k1 - segment.k0, pipeline.k_align)
    cores = [s.n0 for s in weight.segments if s.k_index == segment.k_index]
    return Piece(
        k_index=segment.k_index,
        core=cores.index(segment.n0),
        n0=segment.n0,
        q=weight.quantized(index),
        N=n,
        K=k,
        n_bytes=n * k * pipeline.bits // 8,
    )
