# SPDX-License-Identifier: Apache-2.0
"""The vector operations in C (``kernels/src/vector_*.c``, ``attention*.c``): the bits of :mod:`vector_ops_numpy`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from reference_engine.errors import EngineError, UsageError
from reference_engine.kernels.library import KernelLibrary
from reference_engine.kv_cache_cells import I32, KvLayer
from reference_engine.kv_cache_native import describe
from reference_engine.vector_ops_math import F32


class NativeOps:
    """See :class:`reference_engine.vector_ops.VectorOps`."""

    def __init__(self, kernels: KernelLibrary, threads: int) -> None:
        lib = kernels.lib
        self.kernels, self.threads = kernels, threads
        self._floats, self._ints = kernels.floats, kernels.ints
        self._null = kernels.ffi.NULL
        self._map: Callable[..., None] = lib.ek_map
        self._rms_norm: Callable[..., None] = lib.ek_rms_norm
        self._add_rms_norm: Callable[..., None] = lib.ek_add_rms_norm
        self._rope: Callable[..., None] = lib.ek_rope
        self._attention: Callable[..., int] = lib.ek_attention
        self._codes = {name: getattr(lib, f"EK_{name}") for name in _OPERATIONS}

    @property
    def name(self) -> str:
        return self.kernels.path

    def _one(self, operation: int, x: F32, out: F32 | None, s: float = 0.0) -> F32:
        out = np.empty_like(x) if out is None else out
        n = x.size
        if out.size != n:
            raise UsageError(f"{n} values do not go into an array of shape {out.shape}")
        self._map(operation, self._floats(x), self._null, self._floats(out), n, n, s, self.threads)
        return out

    def _two(self, operation: int, x: F32, y: F32, out: F32 | None) -> F32:
        out = np.empty_like(x) if out is None else out
        n, period = x.size, y.size
        if out.size != n or (n != period and (not period or n % period)):
            raise UsageError(f"arrays of shapes {x.shape} and {y.shape} do not meet in one of shape {out.shape}")
        self._map(operation, self._floats(x), self._floats(y), self._floats(out), n, period, 0.0, self.threads)
        return out

    def rms_norm(self, x: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        out = np.empty_like(x) if out is None else out
        n, floats = x.shape[-1], self._floats
        w = self._null if weight is None else floats(weight)
        self._rms_norm(floats(x), w, floats(out), x.size // n, n, eps, self.threads)
        return out

    def add_rms_norm(self, x: F32, y: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        out = np.empty_like(x) if out is None else out
        n, floats = x.shape[-1], self._floats
        w = self._null if weight is None else floats(weight)
        self._add_rms_norm(floats(x), floats(y), w, floats(out), x.size // n, n, eps, self.threads)
        return out

    def rope(self, x: F32, cos: F32, sin: F32, neox: bool) -> None:
        rows, heads, dim = x.shape
        floats = self._floats
        self._rope(floats(x), floats(cos), floats(sin), rows, heads, dim, cos.shape[1], neox, self.threads)

    def silu_mul(self, gate: F32, up: F32, out: F32 | None = None) -> F32:
        return self._two(self._codes["SILU_MUL"], gate, up, out)

    def gelu_mul(self, gate: F32, up: F32, out: F32 | None = None, half_table: bool = False) -> F32:
        return self._two(self._codes["GELU_TABLE_MUL" if half_table else "GELU_MUL"], gate, up, out)

    def gelu(self, x: F32, out: F32 | None = None, half_table: bool = False) -> F32:
        return self._one(self._codes["GELU_TABLE" if half_table else "GELU"], x, out)

    def silu(self, x: F32, out: F32 | None = None) -> F32:
        return self._one(self._codes["SILU"], x, out)

    def sigmoid(self, x: F32, out: F32 | None = None) -> F32:
        return self._one(self._codes["SIGMOID"], x, out)

    def softplus(self, x: F32, out: F32 | None = None) -> F32:
        return self._one(self._codes["SOFTPLUS"], x, out)

    def exp(self, x: F32, out: F32 | None = None) -> F32:
        return self._one(self._codes["EXP"], x, out)

    def tanh(self, x: F32, out: F32 | None = None) -> F32:
        return self._one(self._codes["TANH"], x, out)

    def add(self, x: F32, y: F32, out: F32 | None = None) -> F32:
        return self._two(self._codes["ADD"], x, y, out)

    def mul(self, x: F32, y: F32, out: F32 | None = None) -> F32:
        return self._two(self._codes["MUL"], x, y, out)

    def scale(self, x: F32, s: float, out: F32 | None = None) -> F32:
        return self._one(self._codes["SCALE"], x, out, s)

    def softcap(self, x: F32, c: float, out: F32 | None = None) -> F32:
        return self._one(self._codes["SOFTCAP"], x, out, c)

    def log_softmax(self, x: F32) -> F32:
        out, n = np.empty_like(x), x.shape[-1]
        self.kernels.lib.ek_log_softmax(self._floats(x), self._floats(out), x.size // n, n, self.threads)
        return out

    def check_finite(self, x: F32) -> bool:
        return bool(self.kernels.lib.ek_check_finite(self._floats(x), x.size, self.threads))

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
        rows, heads, dim = q.shape
        if out is None:
            out = np.empty((rows, heads * layer.v_dim), np.float32)
        if positions.dtype != np.int32 or len(positions) != rows:
            raise UsageError(f"{rows} query rows need as many int32 positions, not {positions.dtype} {positions.shape}")
        if dim != layer.k_dim or heads % layer.n_kv_heads or out.size != rows * heads * layer.v_dim:
            raise UsageError(
                f"queries {q.shape} and output {out.shape} do not fit {layer.n_kv_heads} heads of {layer.k_dim} keys "
                f"and {layer.v_dim} values"
            )
        failed: Any = self._attention(
            describe(self.kernels, layer),
            self._floats(q),
            self._ints(positions),
            rows,
            heads,
            scale,
            softcap,
            window,
            flash,
            self._floats(out),
            self.threads,
        )
        if failed:
            raise EngineError("no memory for attention: take a smaller batch or context")
        return out


_OPERATIONS = (
    "EXP",
    "TANH",
    "SIGMOID",
    "SILU",
    "GELU",
    "SOFTPLUS",
    "GELU_TABLE",
    "SCALE",
    "SOFTCAP",
    "ADD",
    "MUL",
    "SILU_MUL",
    "GELU_MUL",
    "GELU_TABLE_MUL",
)
