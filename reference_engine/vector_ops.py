# SPDX-License-Identifier: Apache-2.0
"""Everything of a forward pass but the matrix products, behind one interface with two implementations of the same bits.

Arrays are f32 and C-contiguous. ``out`` is written when it is given (it may be the first argument) and a new array
otherwise. Every reduction has one order that depends on its own length alone; see the implementations.
"""

from __future__ import annotations

from typing import Protocol

from reference_engine.kernels.library import KernelLibrary
from reference_engine.kv_cache_cells import I32, KvLayer
from reference_engine.vector_ops_math import F32
from reference_engine.vector_ops_native import NativeOps
from reference_engine.vector_ops_numpy import NumpyOps


class VectorOps(Protocol):
    @property
    def name(self) -> str:
        """ "numpy", or the CPU path of the C library."""

    def rms_norm(self, x: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        """x / sqrt(mean(x^2) + eps) * weight over the last axis; x [..., n], weight [n] or None. Squares sum in f64."""

    def add_rms_norm(self, x: F32, y: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        """x += y in place, then rms_norm(x): a residual and the norm after it in one call."""

    def rope(self, x: F32, cos: F32, sin: F32, neox: bool) -> None:
        """Rotates x [M, H, D] in place by tables [M, n_rot / 2] (rope.py); values from n_rot on stay.

        Pairs are (i, i + n_rot / 2) with ``neox`` and (2 i, 2 i + 1) without.
        """

    def silu_mul(self, gate: F32, up: F32, out: F32 | None = None) -> F32:
        """silu(gate) * up."""

    def gelu_mul(self, gate: F32, up: F32, out: F32 | None = None, half_table: bool = False) -> F32:
        """gelu(gate) * up, the tanh form; ``half_table``: with the bits of ggml's table of half floats."""

    def gelu(self, x: F32, out: F32 | None = None, half_table: bool = False) -> F32: ...

    def silu(self, x: F32, out: F32 | None = None) -> F32: ...

    def sigmoid(self, x: F32, out: F32 | None = None) -> F32: ...

    def softplus(self, x: F32, out: F32 | None = None) -> F32: ...

    def exp(self, x: F32, out: F32 | None = None) -> F32: ...

    def tanh(self, x: F32, out: F32 | None = None) -> F32: ...

    def add(self, x: F32, y: F32, out: F32 | None = None) -> F32:
        """x + y of one shape, or y of the last axis only."""

    def mul(self, x: F32, y: F32, out: F32 | None = None) -> F32:
        """x * y of one shape, or y of the last axis only."""

    def scale(self, x: F32, s: float, out: F32 | None = None) -> F32:
        """x times s, s rounded to f32 first."""

    def softcap(self, x: F32, c: float, out: F32 | None = None) -> F32:
        """c tanh(x / c), with 1 / c rounded to f32 as ggml has it."""

    def log_softmax(self, x: F32) -> F32:
        """x - max - ln(sum(exp(x - max))) over the last axis; the sum is f64 in 8 lanes."""

    def check_finite(self, x: F32) -> bool:
        """Whether no value is NaN or infinite."""

    def attention(
        self,
        q: F32,
        layer: KvLayer,
        positions: I32,
        *,
        scale: float,
        window: int = 0,
        softcap: float = 0.0,
        flash: bool = False,
        out: F32 | None = None,
    ) -> F32:
        """Attention of queries [M, H, Dk] at ``positions`` [M] over the layer's cells, which hold those rows already.

        A row sees positions max(0, p - window + 1) to p (all up to p with window 0). H is a multiple of the layer's
        heads: query head h reads head h // (H / Hkv). f32 [M, H * Dv].
        """


def make_ops(kernels: KernelLibrary | None, threads: int) -> VectorOps:
    """The operations in C when there are kernels, else in NumPy (one thread)."""
    return NumpyOps() if kernels is None else NativeOps(kernels, threads)
