# SPDX-License-Identifier: Apache-2.0
"""What the graphs have in common: one pass of rows through the layers, RoPE tables, embedding and head.

The names under which intermediate results are traced are those of llama.cpp's graph callback (src/models/*.cpp,
b11434), so that a trace can be laid beside one of its.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.backends import dequantize_rows
from reference_engine.rope import Yarn, rope_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.backends import Linear, LinearGroup
    from reference_engine.gguf_hparams import Hparams
    from reference_engine.kernels.library import KernelLibrary
    from reference_engine.kv_cache import KvCache, KvLayer
    from reference_engine.recurrent_state import RecurrentState
    from reference_engine.vector_ops import VectorOps
    from reference_engine.weights import Loader
    from reference_engine.workspace import Rows

    F32 = NDArray[np.float32]

Trace = Callable[[str, int, "F32"], None]
"""Called with the name of an intermediate result, its layer (-1 outside layers) and its rows. The array is scratch:
valid during the call only."""

_FIRST_POSITIONS = 256


class RopeTable:
    """cos and sin of every position, worked out block by block as the context grows; f32 [positions, n_rot / 2]."""

    def __init__(
        self,
        n_rot: int,
        base: float,
        *,
        freq_scale: float = 1.0,
        factors: F32 | None = None,
        yarn: Yarn | None = None,
        kernels: KernelLibrary | None = None,
    ) -> None:
        self._tables = functools.partial(
            rope_tables, n_rot=n_rot, base=base, freq_scale=freq_scale, factors=factors, yarn=yarn
        )
        self._cos = self._sin = np.zeros((0, n_rot // 2), dtype=np.float32)
        self._kernels = kernels
        self._last_asked = (0, 0)
        self._last = self._cos, self._sin

    def at(self, first: int, m: int) -> tuple[F32, F32]:
        """Rows ``first`` to ``first + m``, not copied. Every layer of a pass asks for the same ones."""
        if (first, m) != self._last_asked:
            if self._kernels is not None:
                self._kernels.unpin(*self._last)
            self._last_asked, self._last = (first, m), self._rows(first, m)
            if self._kernels is not None:
                self._kernels.pin(*self._last)
        return self._last

    def _rows(self, first: int, m: int) -> tuple[F32, F32]:
        known = len(self._cos)
        if first + m > known:
            positions = np.arange(known, max(first + m, 2 * known, _FIRST_POSITIONS), dtype=np.int32)
            cos, sin = self._tables(positions)
            self._cos = np.concatenate((self._cos, cos))
            self._sin = np.concatenate((self._sin, sin))
        return self._cos[first : first + m], self._sin[first : first + m]


class Run:
    """M rows on their way through the layers, at consecutive positions from ``first`` on.

    A graph is written as steps of this class. Each step computes into the scratch arrays of the layer that ``enter``
    chose, shows the result to the trace, and returns it.
    """

    def __init__(
        self,
        ops: VectorOps,
        cache: KvCache,
        scratch: Sequence[Rows],
        first: int,
        positions: NDArray[np.int32],
        *,
        tokens: Sequence[int] = (),
        flash: bool = False,
        gelu_half_table: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self.ops, self.cache, self.first, self.positions, self.m = ops, cache, first, positions, len(positions)
        self.tokens = tokens
        self.flash, self.gelu_half_table, self.trace = flash, gelu_half_table, trace
        self._scratch = scratch
        self.window = 0
        self._layer = -1
        self._rows = scratch[0]
        self._kv: KvLayer | None = None

    def enter(self, index: int, layer: int, window: int, kv_index: int) -> None:
        """Go into a layer: the ``index``-th that is loaded, number ``layer`` of the model.

        Its keys and values are those of the ``kv_index``-th.
        """
        self._layer = layer
        self.window = window
        self._rows = self._scratch[index]
        self._kv = self.cache.layer(kv_index) if self.cache.has_layer(kv_index) else None

    def state(self, index: int) -> RecurrentState:
        """What the ``index``-th loaded layer, a recurrent one, remembers."""
        state = self.cache.states[index]
        assert state is not None
        return state

    def leave(self) -> None:
        """Out of the last layer: what follows belongs to none."""
        self._layer = -1

    def show(self, name: str, array: F32) -> None:
        if self.trace is not None:
            self.trace(name, self._layer, array)

    def rms_norm(self, name: str, x: F32, weight: F32, eps: float) -> F32:
        """[M, n_embd] -> [M, n_embd]."""
        h = self.ops.rms_norm(x, weight, eps, out=self._rows.h)
        if self.trace is not None:
            self.trace(name, self._layer, h)
        return h

    def add_rms_norm(self, names: tuple[str, str], x: F32, y: F32, weight: F32, eps: float) -> F32:
        """x += y, then the norm of x: [M, n_embd] -> [M, n_embd], in one call."""
        h = self.ops.add_rms_norm(x, y, weight, eps, out=self._rows.h)
        if self.trace is not None:
            self.trace(names[0], self._layer, x)
            self.trace(names[1], self._layer, h)
        return h

    def norm_in_place(self, name: str, y: F32, weight: F32 | None, eps: float) -> F32:
        """The same in place, over the last axis: rows [M, n_embd], or each head of [M, heads, key]."""
        self.ops.rms_norm(y, weight, eps, out=y)
        if self.trace is not None:
            self.trace(name, self._layer, y)
        return y

    def scale_in_place(self, name: str, y: F32, factor: float) -> F32:
        self.ops.scale(y, factor, out=y)
        if self.trace is not None:
            self.trace(name, self._layer, y)
        return y

    @property
    def heads(self) -> tuple[F32, F32, F32]:
        """The layer's arrays of q [M, heads, key], k [M, kv_heads, key] and v [M, kv_heads, value], to be filled."""
        rows = self._rows
        return rows.q, rows.k, rows.v

    def qkv(self, group: LinearGroup, h: F32) -> tuple[F32, F32, F32]:
        """[M, n_embd] -> q [M, heads, key], k [M, kv_heads, key], v [M, kv_heads, value]."""
        rows = self._rows
        group(h, rows.qkv)
        if self.trace is not None:
            for name, array in zip(("Qcur", "Kcur", "Vcur"), rows.qkv, strict=True):
                self.trace(name, self._layer, array)
        return rows.q, rows.k, rows.v

    def rope(self, q: F32, k: F32 | None, table: RopeTable, *, neox: bool) -> None:
        """Turn q, and k where there is one, in place; the table's rows are those of this pass."""
        cos, sin = table.at(self.first, self.m)
        self.ops.rope(q, cos, sin, neox)
        if self.trace is not None:
            self.trace("Qcur_rope", self._layer, q)
        if k is not None:
            self.ops.rope(k, cos, sin, neox)
            if self.trace is not None:
                self.trace("Kcur_rope", self._layer, k)

    def attention(self, q: F32, k: F32, v: F32, *, scale: float, window: int = 0, softcap: float = 0.0) -> F32:
        """Append k and v to the layer's cache and attend: [M, heads * value]."""
        assert self._kv is not None
        self._kv.append(k, v, self.positions)
        return self.attend(q, scale=scale, window=window, softcap=softcap)

    def attend(self, q: F32, *, scale: float, window: int = 0, softcap: float = 0.0) -> F32:
        """Attend to the keys and values that are there: [M, heads * value]."""
        assert self._kv is not None
        out = self.ops.attention(
            q,
            self._kv,
            self.positions,
            scale=scale,
            window=window,
            softcap=softcap,
            flash=self.flash,
            out=self._rows.attended,
        )
        if self.trace is not None:
            self.trace("kqv_out", self._layer, out)
        return out

    def linear(self, name: str, linear: Linear, a: F32) -> F32:
        """[M, n] -> [M, n_embd], a contribution to the residual stream."""
        y = linear(a, self._rows.y)
        if self.trace is not None:
            self.trace(name, self._layer, y)
        return y

    def gate_up(self, group: LinearGroup, h: F32) -> tuple[F32, F32]:
        """[M, n_embd] -> gate and up [M, n_ff]."""
        gate, up = self._rows.gate_up
        group(h, self._rows.gate_up)
        if self.trace is not None:
            self.trace("ffn_gate", self._layer, gate)
            self.trace("ffn_up", self._layer, up)
        return gate, up

    def silu_mul(self, gate: F32, up: F32) -> F32:
        """silu(gate) * up, into gate."""
        self.ops.silu_mul(gate, up, out=gate)
        if self.trace is not None:
            self.trace("ffn_swiglu", self._layer, gate)
        return gate

    def gelu_mul(self, gate: F32, up: F32) -> F32:
        """gelu(gate) * up, into gate."""
        self.ops.gelu_mul(gate, up, out=gate, half_table=self.gelu_half_table)
        if self.trace is not None:
            self.trace("ffn_geglu", self._layer, gate)
        return gate

    def add(self, name: str, x: F32, y: F32) -> None:
        """x += y."""
        self.ops.add(x, y, out=x)
        if self.trace is not None:
            self.trace(name, self._layer, x)


class Graph:
    """Embedding, layers, final norm and head of a model; a subclass for each architecture adds its layers."""

    embedding_scale = 1.0
    logit_softcap: float = 0.0
    head_names: tuple[str, ...] = ("output.weight", "token_embd.weight")

    def __init__(self, load: Loader) -> None:
        """The head stays out where the loader is told to leave it."""
        self.eps = load.hparams.number("attention.layer_norm_rms_epsilon")
        self.kernels = load.backend.kernels
        self.embedding = load.tensor("token_embd.weight")
        self.output_norm = load.vector("output_norm.weight")
        windows = self.windows(load.hparams)
        self.layer_numbers = tuple(load.layers)
        self.layer_windows = tuple(windows[number] for number in load.layers)
        self.head: Linear | None = None
        if load.head:
            name = next(name for name in self.head_names if load.has(name))
            self.head = load.linear(name, bias_of="output.weight")

    @staticmethod
    def windows(hparams: Hparams) -> tuple[int, ...]:
        """How many positions back each layer of the model sees, its own included; 0 where it sees all."""
        return (0,) * hparams.n_layer

    def new_states(self) -> list[RecurrentState | None]:
        """Empty memories of the loaded layers that are recurrent; none where no layer is."""
        return []

    def kv_index(self, index: int) -> int:
        """Which loaded layer holds the keys and values that the ``index``-th reads."""
        return index

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        """The ``index``-th loaded layer, on the residual stream x [M, n_embd] in place."""
        raise NotImplementedError

    def embed(self, tokens: Sequence[int], out: F32) -> F32:
        """Rows of the embedding, into ``out`` [M, n_embd]."""
        rows = dequantize_rows(self.embedding, np.asarray(tokens, dtype=np.int64), self.kernels)
        np.multiply(rows, np.float32(self.embedding_scale), out=out)
        return out

    def run_layers(self, x: F32, run: Run) -> None:
        run.show("inp_embd", x)
        for index, number in enumerate(self.layer_numbers):
            run.enter(index, number, self.layer_windows[index], self.kv_index(index))
            self.run_layer(index, x, run)

    def hidden(self, x: F32, run: Run, out: F32) -> F32:
        """The final norm of some rows [rows, n_embd], into ``out``."""
        run.leave()
        run.ops.rms_norm(x, self.output_norm, self.eps, out=out)
        run.show("result_norm", out)
        return out

    def logits(self, hidden: F32, run: Run, out: F32) -> F32:
        """[rows, n_embd] -> [rows, n_vocab] into ``out``; without a head [rows, 0]."""
        if self.head is None:
            return out
        self.head(hidden, out)
        if self.logit_softcap:
            run.ops.softcap(out, self.logit_softcap, out=out)
        run.show("result_output", out)
        return out


def rope_table(
    load: Loader,
    *,
    base: float | None = None,
    scaled: bool = True,
    factors: F32 | None = None,
    n_rot: int = 0,
) -> RopeTable:
    """The table that the hyper-parameters ask for.

    ``base``: another one than rope.freq_base; ``n_rot``: than rope.dimension_count. Not ``scaled``: positions as they
    are, whatever rope.scaling says.
    """
    hparams = load.hparams
    kind = hparams.values["rope.scaling.type"]
    factor = hparams.number("rope.scaling.factor") if scaled and kind != "none" else 1.0
    yarn = Yarn(hparams.integer("rope.scaling.original_context_length")) if kind == "yarn" else None
    freq_scale = float(np.float32(1) / np.float32(factor))
    return RopeTable(
        n_rot or hparams.integer("rope.dimension_count"),
        base or hparams.number("rope.freq_base"),
        freq_scale=freq_scale,
        factors=factors,
        yarn=yarn,
        kernels=load.backend.kernels,
    )


def windows_by_pattern(hparams: Hparams) -> tuple[int, ...]:
    """The sliding window for the layers that attention.sliding_window_pattern marks."""
    window, flags = hparams.integer("attention.sliding_window"), hparams.layers("attention.sliding_window_pattern")
    return tuple(window if flag else 0 for flag in flags)


def optional_number(hparams: Hparams, suffix: str, default: float) -> float:
    return default if hparams.values[suffix] is None else hparams.number(suffix)


def inverse_root(n: int) -> float:
    """1 / sqrt(n) in f32."""
    return float(np.float32(1) / np.float32(math.sqrt(n)))


def root(n: int) -> float:
    """sqrt(n) in f32, through f64: NumPy's own f32 root on 32-bit Arm is an estimate refined, not rounded (1.24.2)."""
    return float(np.float32(math.sqrt(n)))
