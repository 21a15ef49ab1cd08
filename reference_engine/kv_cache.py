# SPDX-License-Identifier: Apache-2.0
"""Keys and values of the tokens so far: one set of cells (:mod:`kv_cache_cells`) per layer of the model."""

from __future__ import annotations

from collections.abc import Sequence

from reference_engine.errors import UsageError
from reference_engine.kernels.library import KernelLibrary
from reference_engine.kv_cache_cells import I32, KvLayer
from reference_engine.kv_cache_formats import FORMATS, rotation_sizes
from reference_engine.kv_cache_native import NativeKvLayer
from reference_engine.recurrent_state import RecurrentState

__all__ = ["I32", "KvCache", "KvLayer"]


class KvCache:
    """One :class:`KvLayer` per layer that has attention (heads above 0); positions 0 to ``n_past - 1`` are held.

    ``n_kv_heads``, ``head_dim``, ``head_dim_v`` (default: ``head_dim``) and ``windows`` (0: all positions) are one
    number or one per layer. ``type_k`` and ``type_v``: f32, f16, q8_0, q4_0. ``rotate``: rotate rows of quantised
    types as llama.cpp does. ``n_batch``: the largest batch that a ring takes without growing.
    With ``kernels``, rows are stored by C, on ``threads`` threads.
    """

    def __init__(
        self,
        n_layers: int,
        n_kv_heads: int | Sequence[int],
        head_dim: int | Sequence[int],
        n_ctx: int,
        *,
        type_k: str = "f16",
        type_v: str = "f16",
        rotate: bool = False,
        windows: int | Sequence[int] = 0,
        head_dim_v: int | Sequence[int] | None = None,
        n_batch: int = 512,
        ring: bool = True,
        kernels: KernelLibrary | None = None,
        threads: int = 1,
    ) -> None:
        for kind in (type_k, type_v):
            if kind not in FORMATS:
                raise UsageError(f"no KV cache type {kind!r}: take one of {', '.join(FORMATS)}")
        kinds = FORMATS[type_k], FORMATS[type_v]
        heads, dims_k = _per_layer(n_kv_heads, n_layers), _per_layer(head_dim, n_layers)
        dims_v = dims_k if head_dim_v is None else _per_layer(head_dim_v, n_layers)
        uniform = [len({d for d, h in zip(dims, heads, strict=True) if h}) == 1 for dims in (dims_k, dims_v)]
        self.n_ctx, self.n_past = n_ctx, 0
        self.states: list[RecurrentState | None] = []
        self._layers: list[KvLayer | None] = []
        for n, k_dim, v_dim, window in zip(heads, dims_k, dims_v, _per_layer(windows, n_layers), strict=True):
            rot_k = rotation_sizes(k_dim, 0, uniform=uniform[0])[0] if rotate and kinds[0].quantised else 0
            rot_v = rotation_sizes(0, v_dim, uniform=uniform[1])[1] if rotate and kinds[1].quantised else 0
            if not n:
                self._layers.append(None)
                continue
            layer = (KvLayer if kernels is None else NativeKvLayer)(
                n, k_dim, v_dim, n_ctx, kinds, rotation=(rot_k, rot_v), window=window, n_batch=n_batch, ring=ring
            )
            if isinstance(layer, NativeKvLayer) and kernels is not None:
                layer.kernels, layer.threads = kernels, threads
            self._layers.append(layer)

    def has_layer(self, il: int) -> bool:
        """Layer ``il`` has keys and values of its own."""
        return self._layers[il] is not None

    def layer(self, il: int) -> KvLayer:
        """The keys and values of layer ``il``; LookupError when it has none of its own."""
        layer = self._layers[il]
        if layer is None:
            raise LookupError(f"layer {il} has no keys and values of its own")
        return layer

    def truncate(self, n_past: int) -> None:
        """Forgets every token from position ``n_past`` on: the next results have the bits as if it had never been.

        UsageError, and no change, when a ring no longer holds what the window of the next token needs.
        """
        if not 0 <= n_past <= self.n_past:
            raise UsageError(f"cannot cut {self.n_past} tokens of context back to {n_past}")
        present = [layer for layer in self._layers if layer is not None]
        if not all(layer.can_truncate(n_past) for layer in present):
            raise UsageError(
                f"cannot cut the context back to {n_past} tokens: layers with a window keep the last tokens only"
            )
        states = [state for state in self.states if state is not None]
        for state in states:
            if not state.can_truncate(n_past):
                raise UsageError(
                    f"cannot cut the context back to {n_past} tokens: recurrent layers remember the last batch only, "
                    f"from {state.oldest} on; start anew"
                )
        for layer in present:
            layer.truncate(n_past)
        for state in states:
            state.truncate(n_past)
        self.n_past = n_past

    def bytes_used(self) -> list[int]:
        """Bytes of the tokens held, by layer."""
        return [0 if layer is None else layer.row_bytes * min(self.n_past, layer.capacity) for layer in self._layers]

    def bytes_allocated(self) -> list[int]:
        """Bytes of all cells, by layer; cells never written cost address space only."""
        return [0 if layer is None else layer.row_bytes * layer.capacity for layer in self._layers]


def _per_layer(value: int | Sequence[int], n_layers: int) -> list[int]:
    values = [value] * n_layers if isinstance(value, int) else list(value)
    if len(values) != n_layers:
        raise UsageError(f"{len(values)} values for {n_layers} layers of the KV cache")
    return values
