# SPDX-License-Identifier: Apache-2.0
"""gemma2: scaled embedding, norms before and after attention and FFN, GELU, soft caps, every second layer in a window.

Facts: llama.cpp b11434 src/models/gemma2.cpp. Layer il sees a window where il % 2 is 0, unless the file has another
pattern; q is scaled by 1/sqrt(key_length), by 1/sqrt(n_embd / heads) in the 27B (46 layers); soft caps are 50 and 30
where the file gives none; the head is token_embd always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_engine.graphs.common import (
    Graph,
    Run,
    inverse_root,
    optional_number,
    root,
    rope_table,
    windows_by_pattern,
)
from reference_engine.graphs.llama import Layer

if TYPE_CHECKING:
    from reference_engine.gguf_hparams import Hparams
    from reference_engine.graphs.common import F32
    from reference_engine.weights import Loader

_LAYERS_OF_27B = 46


class LayerWithPostNorms(Layer):
    def __init__(self, load: Loader, number: int) -> None:
        super().__init__(load, number)
        self.post_attention_norm = load.vector(f"blk.{number}.post_attention_norm.weight")
        self.post_ffw_norm = load.vector(f"blk.{number}.post_ffw_norm.weight")


class Gemma2Graph(Graph):
    head_names = ("token_embd.weight",)

    def __init__(self, load: Loader) -> None:
        super().__init__(load)
        hparams = load.hparams
        self.embedding_scale = root(hparams.n_embd)
        self.logit_softcap = optional_number(hparams, "final_logit_softcapping", 30.0)
        self.score_softcap = optional_number(hparams, "attn_logit_softcapping", 50.0)
        self.q_scale = query_scale(hparams, _LAYERS_OF_27B)
        self.rope = rope_table(load)
        self.rope_in_window = rope_table(load, base=hparams.number("rope.freq_base_swa"))
        self.layers = [LayerWithPostNorms(load, number) for number in load.layers]

    @staticmethod
    def windows(hparams: Hparams) -> tuple[int, ...]:
        return windows_by_pattern(hparams)

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        w = self.layers[index]

        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        q, k, v = run.qkv(w.qkv, h)
        run.rope(q, k, self.rope_in_window if run.window else self.rope, neox=True)
        run.scale_in_place("Qcur_scaled", q, self.q_scale)
        attended = run.attention(q, k, v, scale=1.0, window=run.window, softcap=self.score_softcap)
        y = run.linear("attn_out", w.attn_output, attended)
        y = run.norm_in_place("attn_post_norm", y, w.post_attention_norm, self.eps)
        h = run.add_rms_norm(("sa_out", "ffn_norm"), x, y, w.ffn_norm, self.eps)

        gate, up = run.gate_up(w.gate_up, h)
        y = run.linear("ffn_out", w.ffn_down, run.gelu_mul(gate, up))
        run.add("l_out", x, run.norm_in_place("ffn_post_norm", y, w.post_ffw_norm, self.eps))


def query_scale(hparams: Hparams, layers_of_27b: int) -> float:
    """What q is scaled by in place of the scores; the 27B models go by n_embd / heads, the others by key_length."""
    if hparams.n_layer == layers_of_27b:
        return inverse_root(hparams.n_embd // hparams.layers("attention.head_count")[0])
    return inverse_root(hparams.integer("attention.key_length"))
