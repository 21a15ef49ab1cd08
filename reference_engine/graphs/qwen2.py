# SPDX-License-Identifier: Apache-2.0
"""qwen2: Qwen 2 and 2.5. As llama, with a bias on q, k and v, and RoPE on pairs (i, i + n_rot / 2).

Facts: llama.cpp b11434 src/models/qwen2.cpp. Biases (output.bias too) are where the file has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_engine.graphs.common import Graph, Run, inverse_root, rope_table
from reference_engine.graphs.llama import Layer

if TYPE_CHECKING:
    from reference_engine.graphs.common import F32
    from reference_engine.weights import Loader


class Qwen2Graph(Graph):
    def __init__(self, load: Loader) -> None:
        super().__init__(load)
        self.scale = inverse_root(load.hparams.integer("attention.key_length"))
        self.rope = rope_table(load)
        self.layers = [Layer(load, number) for number in load.layers]

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        w = self.layers[index]

        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        q, k, v = run.qkv(w.qkv, h)
        run.rope(q, k, self.rope, neox=True)
        attended = run.attention(q, k, v, scale=self.scale)
        y = run.linear("attn_out", w.attn_output, attended)
        h = run.add_rms_norm(("ffn_inp", "ffn_norm"), x, y, w.ffn_norm, self.eps)

        gate, up = run.gate_up(w.gate_up, h)
        y = run.linear("ffn_out", w.ffn_down, run.silu_mul(gate, up))
        run.add("l_out", x, y)
