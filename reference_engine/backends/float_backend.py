# SPDX-License-Identifier: Apache-2.0
"""The ``float`` back end: weights stay as the file has them and are turned into float32 block by block.

The order of sums is that of :mod:`reference_engine.backends.float_product`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from reference_engine.backends.float_product import product
from reference_engine.backends.interface import F32, Counter, Linear, MatmulRecord, NonFinite, Observer
from reference_engine.backends.native import check
from reference_engine.backends.shapes import check_input, result_array

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary


class FloatHost(Protocol):
    """What a float layer needs of its back end."""

    @property
    def kernels(self) -> KernelLibrary | None: ...
    @property
    def threads(self) -> int: ...
    @property
    def observer(self) -> Observer | None: ...


class FloatLinear:
    """One weight [N, K] in float32 arithmetic."""

    where = "float"

    def __init__(self, tensor: GgufTensor, backend: FloatHost) -> None:
        self._tensor, self._backend = tensor, backend
        self.name, self.n_in, self.n_out = tensor.name, tensor.row_elements, tensor.n_rows
        kernels = backend.kernels
        self._native: tuple[Any, int, int, KernelLibrary] | None = None
        if kernels is not None and kernels.lib.ek_dequant_known(tensor.type.number):
            self._native = (kernels.bytes(tensor.raw()), tensor.row_bytes, tensor.type.number, kernels)

    def __call__(self, x: F32, out: F32 | None = None) -> F32:
        """x [M, K] -> [M, N]. NonFinite where the weight holds NaN or infinity."""
        check_input(self.name, x, self.n_in)
        y = result_array(self.name, out, x.shape[0], self.n_out)
        if self._native is None:
            self._in_numpy(x, y)
        else:
            data, row_bytes, kind, kernels = self._native
            code = kernels.lib.ek_linear_float(
                kind, data, row_bytes, self.n_out, self.n_in, kernels.floats(x), x.shape[0], kernels.floats(y),
                self._backend.threads,
            )  # fmt: skip
            if code != -1:
                check(code, self.name, "weight")
        if self._backend.observer is not None:
            self._backend.observer(MatmulRecord(self.name, x, y))
        return y

    def _in_numpy(self, x: F32, y: F32) -> None:
        for start, rows in self._tensor.row_blocks():
            finite = np.isfinite(rows)
            if not finite.all():
                raise NonFinite(self.name, "weight", start + int(np.argmin(finite.all(axis=1))))
            part = np.empty((x.shape[0], rows.shape[0]), np.float32)
            product(x, rows, part)
            y[:, start : start + rows.shape[0]] = part


class LinearList:
    """A group whose members share nothing but their input."""

    def __init__(self, members: Sequence[Linear]) -> None:
        self.members = tuple(members)

    def __call__(self, x: F32, outs: Sequence[F32] | None = None) -> tuple[F32, ...]:
        if outs is None:
            return tuple(member(x) for member in self.members)
        return tuple(member(x, out) for member, out in zip(self.members, outs, strict=True))


class FloatBackend:
    """Every weight in float32."""

    name = "float"

    def __init__(self, kernels: KernelLibrary | None, threads: int) -> None:
        self.kernels, self.threads = kernels, threads
        self.observer: Observer | None = None
        self.counters: Mapping[str, Counter] = MappingProxyType({})

    def linear(self, tensor: GgufTensor) -> Linear:
        return FloatLinear(tensor, self)

    def group(self, tensors: Sequence[GgufTensor]) -> LinearList:
        return LinearList([self.linear(tensor) for tensor in tensors])

    def close(self) -> None:
        """Nothing is held."""
