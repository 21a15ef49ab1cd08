# SPDX-License-Identifier: Apache-2.0
"""gemma4 (dense): heads of two sizes, V normed without a weight, shared keys and values, embeddings for each layer.

Facts: llama.cpp b11434 src/models/gemma4.cpp. Layers in a window have heads of key_length_swa, turn by
rope.freq_base_swa and have no factors; global ones have heads of key_length, and factors of 1e30 in rope_freqs leave
all but a quarter of the head as it is. Scores are not scaled. Without attn_v, V is K before its norm and RoPE. The last
shared_kv_layers layers have queries alone. The hidden state behind the final norm is what the MTP drafter gets. A file
without final_logit_softcapping is capped at 30, as llama.cpp does (llama-hparams.h).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.backends import dequantize_rows
from reference_engine.errors import UsageError
from reference_engine.graphs.common import (
    Graph,
    Run,
    inverse_root,
    optional_number,
    root,
    rope_table,
    windows_by_pattern,
)

if TYPE_CHECKING:
    from reference_engine.gguf_hparams import Hparams
    from reference_engine.graphs.common import F32
    from reference_engine.weights import Loader


class Layer:
    def __init__(self, load: Loader, number: int) -> None:
        name = f"blk.{number}."
        hparams = load.hparams
        self.attn_norm = load.vector(name + "attn_norm.weight")
        self.shares = hparams.kv_source(number) != number
        self.qkv = load.linear(name + "attn_qkv.weight") if load.has(name + "attn_qkv.weight") else None
        self.v_is_k = self.qkv is None and not load.has(name + "attn_v.weight")
        if self.qkv is None:
            parts = "q" if self.shares else "qk" if self.v_is_k else "qkv"
            self.separate = load.group(*(f"{name}attn_{part}.weight" for part in parts))
        self.q_norm = load.vector(name + "attn_q_norm.weight")
        self.k_norm = None if self.shares else load.vector(name + "attn_k_norm.weight")
        self.attn_output = load.linear(name + "attn_output.weight")
        self.post_attention_norm = load.vector(name + "post_attention_norm.weight")
        self.ffn_norm = load.vector(name + "ffn_norm.weight")
        self.gate_up = load.group(name + "ffn_gate.weight", name + "ffn_up.weight")
        self.ffn_down = load.linear(name + "ffn_down.weight")
        self.post_ffw_norm = load.vector(name + "post_ffw_norm.weight")
        scale = load.optional_vector(name + "layer_output_scale.weight")
        self.output_scale = 1.0 if scale is None else float(scale[0])
        if hparams.optional_integer("embedding_length_per_layer_input"):
            self.inp_gate = load.linear(name + "inp_gate.weight")
            self.proj = load.linear(name + "proj.weight")
            self.post_norm = load.vector(name + "post_norm.weight")


class Gemma4Graph(Graph):
    def __init__(self, load: Loader) -> None:
        super().__init__(load)
        hparams = load.hparams
        self.embedding_scale = root(hparams.n_embd)
        self.logit_softcap = optional_number(hparams, "final_logit_softcapping", 30.0)
        self.rope = rope_table(load, factors=load.vector("rope_freqs.weight"))
        self.rope_in_window = rope_table(
            load, base=hparams.number("rope.freq_base_swa"), n_rot=hparams.integer("rope.dimension_count_swa")
        )
        self.layers = [Layer(load, number) for number in load.layers]
        self._kv_index = [_index(load, hparams.kv_source(number), number) for number in load.layers]
        self.per_layer = PerLayer(load) if hparams.optional_integer("embedding_length_per_layer_input") else None

    @staticmethod
    def windows(hparams: Hparams) -> tuple[int, ...]:
        return windows_by_pattern(hparams)

    def kv_index(self, index: int) -> int:
        return self._kv_index[index]

    def run_layers(self, x: F32, run: Run) -> None:
        # [M, layers, per layer], of every layer at once; each layer takes its own.
        self._inputs = None if self.per_layer is None else self.per_layer(x, run, self.eps)
        super().run_layers(x, run)

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        w = self.layers[index]

        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        attended = self.attention(w, h, run)
        y = run.linear("attn_out", w.attn_output, attended)
        y = run.norm_in_place("attn_post_norm", y, w.post_attention_norm, self.eps)
        h = run.add_rms_norm(("sa_out", "ffn_norm"), x, y, w.ffn_norm, self.eps)

        gate, up = run.gate_up(w.gate_up, h)
        y = run.linear("ffn_out", w.ffn_down, run.gelu_mul(gate, up))
        run.add("pe_in", x, run.norm_in_place("ffn_post_norm", y, w.post_ffw_norm, self.eps))

        if self._inputs is not None:
            own = np.ascontiguousarray(self._inputs[:, self.layer_numbers[index]])
            y = run.linear("per_layer_embd_out", w.proj, run.gelu_mul(w.inp_gate(x), own))
            run.add("per_layer_added", x, run.norm_in_place("per_layer_post_norm", y, w.post_norm, self.eps))
        if w.output_scale != 1.0:
            run.scale_in_place("out_scaled", x, w.output_scale)
        run.show("l_out", x)

    def attention(self, w: Layer, h: F32, run: Run) -> F32:
        """[M, n_embd] -> [M, heads * value]."""
        table = self.rope_in_window if run.window else self.rope
        q, k, v = run.heads
        flat = [array.reshape(len(h), -1) for array in (q, k, v)]
        if w.qkv is not None:
            both = w.qkv(h)
            ends = np.cumsum([array.shape[1] for array in flat])
            for array, part in zip(flat, np.split(both, ends[:-1], axis=1), strict=True):
                array[...] = part
        else:
            w.separate(h, flat[: len(w.separate.members)])
            if w.v_is_k and not w.shares:
                v[...] = k
        run.norm_in_place("Qcur_normed", q, w.q_norm, self.eps)
        if w.shares:
            run.rope(q, None, table, neox=True)
            return run.attend(q, scale=1.0, window=run.window)
        run.norm_in_place("Kcur_normed", k, w.k_norm, self.eps)
        run.norm_in_place("Vcur_normed", v, None, self.eps)
        run.rope(q, k, table, neox=True)
        return run.attention(q, k, v, scale=1.0, window=run.window)


class PerLayer:
    """Embeddings for each layer: a row of a table of their own for the token, and a projection of its embedding."""

    def __init__(self, load: Loader) -> None:
        hparams = load.hparams
        self.width = hparams.integer("embedding_length_per_layer_input")
        self.table = load.tensor("per_layer_token_embd.weight")
        self.kernels = load.backend.kernels
        self.projection = load.linear("per_layer_model_proj.weight")
        self.norm = load.vector("per_layer_proj_norm.weight")
        self.table_scale, self.projection_scale = root(self.width), inverse_root(hparams.n_embd)
        self.sum_scale = float(np.float32(1) / np.float32(math.sqrt(2)))

    def __call__(self, x: F32, run: Run, eps: float) -> F32:
        """x [M, n_embd] scaled embeddings -> [M, layers, width]. Rows of the table are read as they are asked for."""
        m = len(x)
        chosen = dequantize_rows(self.table, np.asarray(run.tokens, dtype=np.int64), self.kernels)
        np.multiply(chosen, np.float32(self.table_scale), out=chosen)
        projected = self.projection(x)
        np.multiply(projected, np.float32(self.projection_scale), out=projected)
        normed = run.ops.rms_norm(projected.reshape(m, -1, self.width), self.norm, eps)
        run.ops.add(normed, chosen.reshape(normed.shape), out=normed)
        result = run.ops.scale(normed, self.sum_scale, out=normed)
        run.show("inp_per_layer", result)
        return result


def _index(load: Loader, source: int, number: int) -> int:
    if source not in load.layers:
        raise UsageError(
            f"Layer {number} reads the keys and values of layer {source}, which is not among those asked for"
        )
    return load.layers.index(source)
