# SPDX-License-Identifier: Apache-2.0
"""Cells of keys and values as the C library sees them, and a layer whose rows are stored by it."""

from __future__ import annotations

from typing import Any

import numpy as np

from reference_engine.errors import UsageError
from reference_engine.kernels.library import KernelLibrary
from reference_engine.kv_cache_cells import I32, KvLayer
from reference_engine.vector_ops_math import F32


def describe(kernels: KernelLibrary, layer: KvLayer) -> Any:
    """The layer's ``ek_kv *``, made anew when its arrays are new; it must not outlive the layer."""
    kept = layer.native
    if kept is not None and kept[0] == layer.generation and kept[1] is kernels:
        return kept[2]
    kv = kernels.ffi.new("ek_kv *")
    pointers = [
        kernels.ffi.from_buffer("uint8_t *", array.view(np.uint8)) if array.size else kernels.ffi.NULL
        for array in (layer.k_codes, layer.k_scales, layer.v_codes, layer.v_scales)
    ]
    kv.k_codes, kv.v_codes = pointers[0], pointers[2]
    kv.k_scales = kernels.ffi.cast("uint16_t *", pointers[1])
    kv.v_scales = kernels.ffi.cast("uint16_t *", pointers[3])
    kv.k_type, kv.v_type = layer.kind_k.number, layer.kind_v.number
    kv.heads, kv.k_dim, kv.v_dim = layer.n_kv_heads, layer.k_dim, layer.v_dim
    kv.capacity, kv.k_rot, kv.v_rot = layer.capacity, layer.rot_k, layer.rot_v
    layer.native = (layer.generation, kernels, kv, pointers)
    return kv


class NativeKvLayer(KvLayer):
    """A :class:`KvLayer` that stores by ``ek_kv_append``; the same bits."""

    kernels: KernelLibrary
    threads: int

    def append(self, k: F32, v: F32, positions: I32) -> None:
        rows = len(positions)
        if positions.dtype != np.int32:
            raise UsageError(f"positions are int32, not {positions.dtype}")
        if k.size != rows * self.n_kv_heads * self.k_dim or v.size != rows * self.n_kv_heads * self.v_dim:
            raise UsageError(f"{rows} positions with keys {k.shape} and values {v.shape} of another size")
        self.claim(positions)
        kernels = self.kernels
        kernels.lib.ek_kv_append(
            describe(kernels, self),
            kernels.floats(k),
            kernels.floats(v),
            kernels.ints(positions),
            rows,
            self.threads,
        )
