# SPDX-License-Identifier: Apache-2.0
"""The vector operations in NumPy: for machines without a compiler, and the twin that the C code is held against."""

from __future__ import annotations

from functools import cache

import numpy as np

from reference_engine import vector_ops_math as vm
from reference_engine.kv_cache_cells import I32, KvLayer
from reference_engine.vector_ops_attention import Scoring, attention
from reference_engine.vector_ops_math import F32, f32

SQRT_2_OVER_PI = f32(0.7978845608028654)


@cache
def gelu_table() -> F32:
    """GELU of every half float as ggml's table has it, f16(x/2 (1 + tanh(...))); by the bits, f32 [65536]."""
    with np.errstate(all="ignore"):
        x = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
        inner = SQRT_2_OVER_PI * x * (f32(1) + vm.GELU_CUBE * x * x)
        y = f32(0.5) * x * (f32(1) + vm.tanh(inner))
        table = y.astype(np.float16).astype(np.float32)
    table.flags.writeable = False
    result: F32 = table
    return result


def gelu_by_table(x: F32) -> F32:
    """GELU through ggml's table: 0 at -10 and below, x at 10 and above (ggml-cpu/vec.h, GGML_GELU_FP16)."""
    with np.errstate(all="ignore"):
        value = gelu_table()[x.astype(np.float16).view(np.uint16)]
    return np.where(x <= f32(-10), f32(0), np.where(x >= f32(10), x, value))


def _put(value: F32, out: F32 | None) -> F32:
    if out is None:
        return np.ascontiguousarray(value)
    out[...] = value
    return out


class NumpyOps:
    """See :class:`reference_engine.vector_ops.VectorOps`."""

    name = "numpy"

    def rms_norm(self, x: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        n = x.shape[-1]
        rows = x.reshape(-1, n)
        # Eight f64 lanes: lane l sums the squares of l, l + 8, ... in rising order; then fold 8, 4, 2, 1.
        padded = np.zeros((len(rows), -(-n // 8), 8), np.float64)
        padded.reshape(len(rows), -1)[:, :n] = rows
        with np.errstate(all="ignore"):
            lanes = np.zeros((len(rows), 8), np.float64)
            for step in range(padded.shape[1]):
                lanes += padded[:, step] * padded[:, step]
            lanes = lanes[:, :4] + lanes[:, 4:]
            lanes = lanes[:, :2] + lanes[:, 2:]
            mean = ((lanes[:, :1] + lanes[:, 1:]) / np.float64(n)).astype(np.float32)
            # The root goes through f64, which rounds to the same f32: NumPy's own on 32-bit Arm is not rounded.
            root = np.sqrt((mean + f32(eps)).astype(np.float64)).astype(np.float32)
            y = rows * (f32(1) / root)
            if weight is not None:
                y = y * weight
        return _put(y.reshape(x.shape), out)

    def add_rms_norm(self, x: F32, y: F32, weight: F32 | None, eps: float, out: F32 | None = None) -> F32:
        return self.rms_norm(self.add(x, y, x), weight, eps, out)

    def rope(self, x: F32, cos: F32, sin: F32, neox: bool) -> None:
        half = cos.shape[1]
        if neox:
            first, second = x[:, :, :half], x[:, :, half : 2 * half]
        else:
            first, second = x[:, :, 0 : 2 * half : 2], x[:, :, 1 : 2 * half : 2]
        c, s = cos[:, None], sin[:, None]
        with np.errstate(all="ignore"):
            first[...], second[...] = first * c - second * s, first * s + second * c

    def silu_mul(self, gate: F32, up: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.silu(gate) * up, out)

    def gelu_mul(self, gate: F32, up: F32, out: F32 | None = None, half_table: bool = False) -> F32:
        with np.errstate(all="ignore"):
            return _put((gelu_by_table(gate) if half_table else vm.gelu(gate)) * up, out)

    def gelu(self, x: F32, out: F32 | None = None, half_table: bool = False) -> F32:
        with np.errstate(all="ignore"):
            return _put(gelu_by_table(x) if half_table else vm.gelu(x), out)

    def silu(self, x: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.silu(x), out)

    def sigmoid(self, x: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.sigmoid(x), out)

    def softplus(self, x: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.softplus(x), out)

    def exp(self, x: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.exp(x), out)

    def tanh(self, x: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.tanh(x), out)

    def add(self, x: F32, y: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(x + y, out)

    def mul(self, x: F32, y: F32, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(x * y, out)

    def scale(self, x: F32, s: float, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(x * f32(s), out)

    def softcap(self, x: F32, c: float, out: F32 | None = None) -> F32:
        with np.errstate(all="ignore"):
            return _put(vm.tanh(x * (f32(1) / f32(c))) * f32(c), out)

    def log_softmax(self, x: F32) -> F32:
        n = x.shape[-1]
        rows = x.reshape(-1, n)
        with np.errstate(all="ignore"):
            shifted = rows - rows.max(axis=1, keepdims=True)
            padded = np.zeros((len(rows), -(-n // 8), 8), np.float64)
            padded.reshape(len(rows), -1)[:, :n] = vm.exp(shifted)
            lanes = np.add.accumulate(padded, axis=1)[:, -1]
            lanes = lanes[:, :4] + lanes[:, 4:]
            lanes = lanes[:, :2] + lanes[:, 2:]
            total = lanes[:, :1] + lanes[:, 1:]
            result: F32 = (shifted - vm.log64(total).astype(np.float32)).reshape(x.shape)
            return result

    def check_finite(self, x: F32) -> bool:
        return bool(np.isfinite(x).all())

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
        if out is None:
            out = np.empty((q.shape[0], q.shape[1] * layer.v_dim), np.float32)
        with np.errstate(all="ignore"):
            return attention(q, layer, positions, Scoring(f32(scale), f32(softcap), window, flash), out)
