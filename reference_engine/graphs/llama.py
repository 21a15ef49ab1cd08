# SPDX-License-Identifier: Apache-2.0
"""llama: Llama 1 to 3, SmolLM2, Mistral and others stored under this name.

Facts: llama.cpp b11434 src/models/llama.cpp. RoPE turns pairs (2i, 2i + 1), because the converter permutes the rows of
q and k; the factors of Llama 3 are stored in rope_freqs.weight.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_engine.graphs.common import Graph, Run, inverse_root, optional_number, rope_table

if TYPE_CHECKING:
    from reference_engine.graphs.common import F32
    from reference_engine.weights import Loader


class Layer:
    def __init__(self, load: Loader, number: int) -> None:
        name = f"blk.{number}."
        self.attn_norm = load.vector(name + "attn_norm.weight")
        self.qkv = load.group(name + "attn_q.weight", name + "attn_k.weight", name + "attn_v.weight")
        self.attn_output = load.linear(name + "attn_output.weight")
        self.ffn_norm = load.vector(name + "ffn_norm.weight")
        self.gate_up = load.group(name + "ffn_gate.weight", name + "ffn_up.weight")
        self.ffn_down = load.linear(name + "ffn_down.weight")


class LlamaGraph(Graph):
    def __init__(self, load: Loader) -> None:
        super().__init__(load)
        hparams = load.hparams
        # 0 stands for: not given.
        given = optional_number(hparams, "attention.scale", 0.0)
        self.scale = given or inverse_root(hparams.integer("attention.key_length"))
        self.rope = rope_table(load, factors=load.optional_vector("rope_freqs.weight"))
        self.layers = [Layer(load, number) for number in load.layers]

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        w = self.layers[index]

        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        q, k, v = run.qkv(w.qkv, h)
        run.rope(q, k, self.rope, neox=False)
        attended = run.attention(q, k, v, scale=self.scale)
        y = run.linear("attn_out", w.attn_output, attended)
        h = run.add_rms_norm(("ffn_inp", "ffn_norm"), x, y, w.ffn_norm, self.eps)

        gate, up = run.gate_up(w.gate_up, h)
        y = run.linear("ffn_out", w.ffn_down, run.silu_mul(gate, up))
        run.add("l_out", x, y)
