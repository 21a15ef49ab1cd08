# SPDX-License-Identifier: Apache-2.0
"""The C side of the matmuls: weights made and multiplied by the kernel library, with the bits of the numpy twin."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from reference_engine.backends.interface import F32, Counter, NonFinite
from reference_engine.backends.npu_weight import NpuWeight, WeightSegment
from reference_engine.backends.pipeline import Pipeline

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary

_KINDS = {"channel": 0, "segment": 1, "tensor": 2, "rank-one": 3}
_F32_TYPE = 0  # ggml's number
_PAGE = mmap.ALLOCATIONGRANULARITY
_ARENA_CHUNK = (64 if sys.maxsize > 1 << 32 else 8) << 20
_FEED_BYTES = 8 << 20  # of the file that are resident at a time while a weight is made
MAX_GROUP = 8
"""Weights in one call (kernels/src/linear_weight.h)."""


def check(code: int, name: str, side: str) -> None:
    """Raise what a kernel's return value says: -1 well, -2 out of memory, else a row that is not finite."""
    if code == -2:
        raise MemoryError(f"no memory for a product with {name}")
    if code >= 0:
        raise NonFinite(name, side, code)


class Arena:
    """Memory of the weights of one back end: huge pages that they share. It lives on while one of them does."""

    def __init__(self, kernels: KernelLibrary) -> None:
        self.kernels = kernels
        self.handle = kernels.ffi.gc(kernels.lib.ek_arena_new(_ARENA_CHUNK), kernels.lib.ek_arena_free)


class NativeWeight:
    """A quantised weight in C memory, freed with this object."""

    def __init__(self, arena: Arena, recipe: Any, name: str) -> None:
        self.kernels, self.lib = arena.kernels, arena.kernels.lib
        self.handle = self.kernels.ffi.gc(self.lib.ek_weight_new(recipe, arena.handle), self.lib.ek_weight_free)
        if not self.handle:
            raise MemoryError(f"no memory for the weight {name}")

    @property
    def bytes(self) -> int:
        return int(self.lib.ek_weight_bytes(self.handle))

    def fill(self, tensor: GgufTensor, threads: int) -> None:
        """All passes over the rows. NonFinite."""
        known = self.lib.ek_dequant_known(tensor.type.number)
        for number in range(self.lib.ek_weight_passes(self.handle)):
            if known:
                raw = tensor.raw()
                step = max(16, _FEED_BYTES // tensor.row_bytes // 16 * 16)
                for start in range(0, tensor.n_rows, step):
                    part = raw[start : start + step]
                    self._feed(tensor.name, number, tensor.type.number, part, start, threads=threads)
                    forget_pages(tensor, start * tensor.row_bytes, start * tensor.row_bytes + part.nbytes)
            else:
                for start, rows in tensor.row_blocks():
                    self._feed(tensor.name, number, _F32_TYPE, rows.view(np.uint8), start, threads=threads)
            self.lib.ek_weight_settle(self.handle, number)

    def _feed(self, name: str, number: int, kind: int, raw: NDArray[np.uint8], first: int, *, threads: int) -> None:
        rows, row_bytes = raw.shape
        data = self.kernels.bytes(raw)
        check(self.lib.ek_weight_feed(self.handle, number, kind, data, row_bytes, first, rows, threads), name, "weight")

    def scales(self, k_index: int, n_out: int) -> F32:
        out = np.empty(n_out, np.float32)
        self.lib.ek_weight_scales(self.handle, k_index, self.kernels.floats(out))
        return out

    def fold(self, k_index: int, n_index: int, length: int) -> F32:
        out = np.empty(length, np.float32)
        self.lib.ek_weight_fold(self.handle, k_index, n_index, self.kernels.floats(out))
        return out

    def unpack(self, k_index: int, n0: int, n1: int, length: int, bits: int) -> NDArray[Any]:
        out: NDArray[Any] = np.empty((n1 - n0, length), np.float16 if bits == 16 else np.int8)
        self.lib.ek_weight_unpack(self.handle, k_index, n0, n1, self.kernels.ffi.from_buffer(out))
        return out


def build_native(tensor: GgufTensor, pipeline: Pipeline, arena: Arena, threads: int) -> NpuWeight:
    """Quantise a weight in C, straight from the mapped file, and let go of the file's pages. NonFinite."""
    ffi, k, n = arena.kernels.ffi, tensor.row_elements, tensor.n_rows
    block, k_op = pipeline.block(k), pipeline.k_op(k)
    signs = pipeline.signs(tensor.name, k_op) if pipeline.hadamard != "none" else None
    k_parts, n_parts = pipeline.k_segments(k), pipeline.n_segments(n)
    k_cuts = ffi.new("int64_t[]", [0, *(end for _, end in k_parts)])
    n_cuts = ffi.new("int64_t[]", [0, *(end for _, end in n_parts)])
    sign_data = ffi.NULL if signs is None else ffi.from_buffer("int8_t *", np.ascontiguousarray(signs))
    recipe = ffi.new(
        "ek_recipe *",
        {
            "bits": pipeline.bits,
            "scale_kind": 0 if pipeline.bits == 16 else _KINDS[pipeline.weight_scale],
            "clamp": pipeline.clamp,
            "fma": pipeline.fma,
            "saturate16": pipeline.int16_overflow == "saturate",
            "a_clip": pipeline.a_clip,
            "b_clip": pipeline.b_clip,
            "n_in": k,
            "n_out": n,
            "k_op": k_op,
            "block": block,
            "signs": sign_data,
            "k_parts": len(k_parts),
            "n_parts": len(n_parts),
            "k_cuts": k_cuts,
            "n_cuts": n_cuts,
        },
    )
    native = NativeWeight(arena, recipe, tensor.name)
    native.fill(tensor, threads)
    rank_one = pipeline.weight_scale == "rank-one"
    scales = [native.scales(i, n) for i in range(len(k_parts))]
    segments = tuple(
        WeightSegment(
            k0, k1, n0, n1, i, i * len(n_parts) + j if rank_one else i, scales[i][n0:n1],
            native.fold(i, j, k1 - k0) if rank_one else None,
        )
        for i, (k0, k1) in enumerate(k_parts)
        for j, (n0, n1) in enumerate(n_parts)
    )  # fmt: skip

    def quantized(index: int) -> NDArray[Any]:
        s = segments[index]
        return native.unpack(s.k_index, s.n0, s.n1, s.k1 - s.k0, pipeline.bits)

    return NpuWeight(tensor.name, k, n, pipeline, k_op, block, signs, segments, quantized, native)


def forget_pages(tensor: GgufTensor, start: int, end: int) -> None:
    """Give back the file's pages under these bytes of a tensor: they can be read again, and memory holds one copy."""
    first = (tensor.data_at + start) // _PAGE * _PAGE
    last = (tensor.data_at + end) // _PAGE * _PAGE
    if last > first and hasattr(mmap, "MADV_DONTNEED"):
        tensor.mapped.madvise(mmap.MADV_DONTNEED, first, last - first)


def prepare(weight: NpuWeight, x: F32, counter: Counter, threads: int) -> list[tuple[NDArray[Any], F32]]:
    """Phase 1 in C: (q, scale) of each prepared activation."""
    native, kernels = weight.native, weight.native.kernels
    found = []
    for segment in weight.activations:
        kind = np.float16 if weight.pipeline.bits == 16 else np.int8
        q: NDArray[Any] = np.empty((x.shape[0], segment.k1 - segment.k0), kind)
        scale = np.empty(x.shape[0], np.float32)
        code = native.lib.ek_linear_prepare(
            native.handle, segment.activation, kernels.floats(x), x.shape[0], kernels.ffi.from_buffer(q),
            kernels.floats(scale), kernels.pointer(counter.values), threads,
        )  # fmt: skip
        check(code, weight.name, "activation")
        found.append((q, scale))
    counter.values += (1, x.shape[0], 0, 0, 0)
    return found


def sums(weight: NpuWeight, activation: int, q: NDArray[Any], columns: int, threads: int) -> NDArray[Any]:
    """Phase 2 in C: int32 (fp16: float32) [M, columns of the activation's N part], not narrowed."""
    native = weight.native
    out: NDArray[Any] = np.empty((q.shape[0], columns), np.float32 if weight.pipeline.bits == 16 else np.int32)
    buffer = native.kernels.ffi.from_buffer
    check(
        native.lib.ek_linear_sums(native.handle, activation, buffer(q), q.shape[0], buffer(out), threads),
        weight.name,
        "activation",
    )
    return out


def collect(
    weight: NpuWeight, segment: WeightSegment, total: NDArray[Any], scale: F32, out: F32, *, threads: int
) -> None:
    """Phase 3 in C, one segment."""
    native, kernels = weight.native, weight.native.kernels
    held = np.ascontiguousarray(total, np.float32 if weight.pipeline.bits == 16 else np.int32)
    native.lib.ek_linear_collect(
        native.handle, segment.k_index, segment.n0, segment.n1, kernels.ffi.from_buffer(held), kernels.floats(scale),
        out.shape[0], kernels.floats(out), threads,
    )  # fmt: skip


class FusedCall:
    """One C call for weights that share an activation: quantise, multiply, dequantise. Its pointers are made once."""

    def __init__(self, weights: Sequence[NpuWeight], counters: Sequence[Counter], threads: int) -> None:
        kernels: KernelLibrary = weights[0].native.kernels
        self._names = [weight.name for weight in weights]
        self._count, self._threads = len(weights), threads
        self._call, self._floats = kernels.lib.ek_linear_quantized, kernels.floats
        self._weights = kernels.ffi.new("ek_weight *[]", [weight.native.handle for weight in weights])
        self._counters = kernels.ffi.new("int64_t *[]", [kernels.pointer(counter.values) for counter in counters])
        self._outs = kernels.ffi.new("float *[]", self._count)
        self._x, self._rows = kernels.ffi.NULL, 0
        self._keep = (tuple(weights), tuple(counters))

    def __call__(self, x: F32, outs: Sequence[F32]) -> None:
        """outs[i] = x times weight i. NonFinite for x."""
        floats, pointers = self._floats, self._outs
        held = [floats(out) for out in outs]
        for i, pointer in enumerate(held):
            pointers[i] = pointer
        self._x, self._rows = floats(x), x.shape[0]
        self.again()

    def again(self) -> None:
        """The call before once more, on what its arrays hold by now."""
        code = self._call(
            self._weights, self._outs, self._counters, self._count, self._x, self._rows, self._threads
        )  # fmt: skip
        if code != -1:
            check(code, self._names[0], "activation")
