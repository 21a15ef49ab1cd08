# SPDX-License-Identifier: Apache-2.0
"""gemma3 (text): as gemma2 with each head of q and k normed in place of soft caps, five layers of six in a window.

Facts: llama.cpp b11434 src/models/gemma3.cpp. Layers in a window turn by rope.freq_base_swa without any scaling of
positions, the others by rope.freq_base and rope.scaling (linear by 8 from the 4B on). Scores have no soft cap whatever
the file says; the logits have one where it says so. 62 layers are the 27B.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_engine.graphs.common import Graph, Run, optional_number, root, rope_table, windows_by_pattern
from reference_engine.graphs.gemma2 import LayerWithPostNorms, query_scale

if TYPE_CHECKING:
    from reference_engine.gguf_hparams import Hparams
    from reference_engine.graphs.common import F32
    from reference_engine.weights import Loader

_LAYERS_OF_27B = 62


class Layer(LayerWithPostNorms):
    def __init__(self, load: Loader, number: int) -> None:
        super().__init__(load, number)
        self.q_norm = load.vector(f"blk.{number}.attn_q_norm.weight")
        self.k_norm = load.vector(f"blk.{number}.attn_k_norm.weight")


class Gemma3Graph(Graph):
    def __init__(self, load: Loader) -> None:
        super().__init__(load)
        hparams = load.hparams
        self.embedding_scale = root(hparams.n_embd)
        self.logit_softcap = optional_number(hparams, "final_logit_softcapping", 0.0)
        self.q_scale = query_scale(hparams, _LAYERS_OF_27B)
        self.rope = rope_table(load)
        self.rope_in_window = rope_table(load, base=hparams.number("rope.freq_base_swa"), scaled=False)
        self.layers = [Layer(load, number) for number in load.layers]

    @staticmethod
    def windows(hparams: Hparams) -> tuple[int, ...]:
        return windows_by_pattern(hparams)

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        w = self.layers[index]

        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        q, k, v = run.qkv(w.qkv, h)
        run.norm_in_place("Qcur_normed", q, w.q_norm, self.eps)
        run.norm_in_place("Kcur_normed", k, w.k_norm, self.eps)
        run.rope(q, k, self.rope_in_window if run.window else self.rope, neox=True)
        run.scale_in_place("Qcur_scaled", q, self.q_scale)
        attended = run.attention(q, k, v, scale=1.0, window=run.window)
        y = run.linear("attn_out", w.attn_output, attended)
        y = run.norm_in_place("attn_post_norm", y, w.post_attention_norm, self.eps)
        h = run.add_rms_norm(("sa_out", "ffn_norm"), x, y, w.ffn_norm, self.eps)

        gate, up = run.gate_up(w.gate_up, h)
        y = run.linear("ffn_out", w.ffn_down, run.gelu_mul(gate, up))
        run.add("l_out", x, run.norm_in_place("ffn_post_norm", y, w.post_ffw_norm, self.eps))
