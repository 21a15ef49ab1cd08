# SPDX-License-Identifier: Apache-2.0
"""What a matmul back end is: the few names that a graph knows of it.

Activations are float32, C-contiguous, [M, K]; a weight is a tensor of shape [N, K]; a result is [M, N]. Every back end
gives a row the same bits whether it comes alone or in any batch (the two presets with one scale per activation matrix
excepted; :mod:`reference_engine.backends.presets` names them).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary

F32 = NDArray[np.float32]


class NonFinite(ValueError):
    """NaN or infinity in a weight or an activation.

    ``where`` is the tensor's name, ``row`` the row of the activation or of the weight, ``side`` which of both.
    """

    def __init__(self, where: str, side: str, row: int) -> None:
        super().__init__(
            f"NaN or infinity in row {row} of the {side} of {where}: "
            + ("the file is damaged or was converted wrongly" if side == "weight" else "a layer before it overflowed")
        )
        self.where, self.side, self.row = where, side, row


@dataclass(frozen=True)
class SegmentRecord:
    """One product of the hardware: rows ``n0`` to ``n1`` of the weight over ``k0`` to ``k1`` of the (padded) K.

    ``q`` int8 (or float16 bits as uint16) [M, k1 - k0], ``scale`` float32 [M], ``sums`` int32 (fp16: float32)
    [M, n1 - n0] as the hardware's C holds them, ``weight_scale`` float32 [n1 - n0].
    """

    k0: int
    k1: int
    n0: int
    n1: int
    q: NDArray[Any]
    scale: F32
    sums: NDArray[Any]
    weight_scale: F32


@dataclass(frozen=True)
class MatmulRecord:
    """One call of one weight, for an observer. ``segments`` is empty where the matmul ran in float."""

    name: str
    x: F32
    y: F32
    segments: tuple[SegmentRecord, ...] = ()


class Counter:
    """What one weight has seen. ``values`` is int64 [5] and written by the kernels themselves.

    ``rim`` counts quantised elements at +-qmax (at least one per row and segment, by construction of the scale);
    ``clipped`` those that rounding put beyond qmax before the clamp or the wrap.
    """

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values = np.zeros(5, np.int64)

    calls = property(lambda self: int(self.values[0]))
    rows = property(lambda self: int(self.values[1]))
    elements = property(lambda self: int(self.values[2]))
    rim = property(lambda self: int(self.values[3]))
    clipped = property(lambda self: int(self.values[4]))


Observer = Callable[[MatmulRecord], None]


class Linear(Protocol):
    """One weight [N, K]."""

    @property
    def name(self) -> str: ...
    @property
    def n_in(self) -> int: ...
    @property
    def n_out(self) -> int: ...
    @property
    def where(self) -> str:
        """``float``, ``npu`` or ``device``: where this weight's products are made."""

    def __call__(self, x: F32, out: F32 | None = None) -> F32:
        """x [M, K] -> y [M, N], into ``out`` where given. ValueError for another shape, NonFinite."""


class LinearGroup(Protocol):
    """Weights with one input (query, key, value; gate, up): the activation is quantised once where it can be."""

    @property
    def members(self) -> tuple[Linear, ...]: ...

    def __call__(self, x: F32, outs: Sequence[F32] | None = None) -> tuple[F32, ...]: ...


class Backend(Protocol):
    """Makes :class:`Linear` objects of tensors. ``name`` as :func:`make_backend` reads it.

    One call at a time: the objects of a back end share scratch space. ``threads`` is how many threads a call may use.
    """

    name: str
    kernels: KernelLibrary | None
    threads: int
    observer: Observer | None

    @property
    def counters(self) -> Mapping[str, Counter]:
        """By tensor name; empty for ``float``."""

    def linear(self, tensor: GgufTensor) -> Linear:
        """NonFinite for a weight that holds NaN or infinity."""

    def group(self, tensors: Sequence[GgufTensor]) -> LinearGroup: ...

    def close(self) -> None: ...
