# SPDX-License-Identifier: Apache-2.0
"""gemma4-assistant: the MTP drafter of gemma4, queries alone on the target's keys and values.

Facts: llama.cpp b11434 src/models/gemma4-assistant.cpp, llama-model.cpp. A step takes a token, embedded by the TARGET,
and a hidden state of the target's width; both go through pre_projection. Layers in a window read the cache of the
target's last layer but one, the others that of its last one. Nothing is written: every token of a draft stands at the
position of the last token of the text, and sees what lies before it. The head is token_embd of the drafter, without a
soft cap; post_projection gives the hidden state for the next step.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.errors import EngineError, UsageError
from reference_engine.graphs.common import RopeTable, Run, rope_table, windows_by_pattern
from reference_engine.workspace import Workspace, layer_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.graphs.common import F32
    from reference_engine.kv_cache import KvCache
    from reference_engine.model import Model
    from reference_engine.vector_ops import VectorOps
    from reference_engine.weights import Loader


class Layer:
    def __init__(self, load: Loader, number: int) -> None:
        name = f"blk.{number}."
        self.attn_norm = load.vector(name + "attn_norm.weight")
        self.q = load.linear(name + "attn_q.weight")
        self.q_norm = load.vector(name + "attn_q_norm.weight")
        self.attn_output = load.linear(name + "attn_output.weight")
        self.post_attention_norm = load.vector(name + "post_attention_norm.weight")
        self.ffn_norm = load.vector(name + "ffn_norm.weight")
        self.gate_up = load.group(name + "ffn_gate.weight", name + "ffn_up.weight")
        self.ffn_down = load.linear(name + "ffn_down.weight")
        self.post_ffw_norm = load.vector(name + "post_ffw_norm.weight")
        self.output_scale = float(load.vector(name + "layer_output_scale.weight")[0])
        self.head_size = load.hparams.head_size(number)


class Gemma4Assistant:
    """A drafter beside the target whose ``cache`` it reads. An MtpHead of reference_engine.speculation.mtp.

    EngineError where it was not made for this target.
    """

    shared_memory = True
    n_heads = 1

    def __init__(self, load: Loader, target: Model, cache: KvCache, ops: VectorOps, *, gelu_half_table: bool) -> None:
        hparams = load.hparams
        self.n_embd = hparams.integer("embedding_length_out")
        _refuse_stranger(load, target)
        self.target, self.cache, self.ops = target, cache, ops
        self.gelu_half_table = gelu_half_table
        self.eps = hparams.number("attention.layer_norm_rms_epsilon")
        self.pre_projection = load.linear("nextn.pre_projection.weight")
        self.post_projection = load.linear("nextn.post_projection.weight")
        self.output_norm = load.vector("output_norm.weight")
        self.head = load.linear("token_embd.weight")
        self.rope = rope_table(load, factors=load.vector("rope_freqs.weight"))
        self.rope_in_window = rope_table(
            load, base=hparams.number("rope.freq_base_swa"), n_rot=hparams.integer("rope.dimension_count_swa")
        )
        self.windows = windows_by_pattern(hparams)
        self.layers = [Layer(load, number) for number in range(hparams.n_layer)]
        shapes = [layer_shape(hparams, number) for number in range(hparams.n_layer)]
        self.workspace = Workspace(shapes, target.backend.kernels)
        last = len(target.layers) - 1
        self.kv_indices = [target.graph.kv_index(last - 1 if window else last) for window in self.windows]

    def on(self, cache: KvCache) -> Gemma4Assistant:
        """The same drafter on another cache of its target."""
        other = copy.copy(self)
        other.cache = cache
        return other

    def truncate(self, n_past: int) -> None:
        """Nothing is remembered."""

    def fill(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> None:
        """Nothing is remembered."""

    def decode(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> tuple[F32, F32]:
        """Rows are independent of each other: all stand at position ``first`` and see the positions before it."""
        del head
        if first < 1 or self.cache.n_past < first:
            raise UsageError(
                f"a draft at position {first} needs the target's positions before it; it has {self.cache.n_past}"
            )
        m = len(tokens)
        scratch = self.workspace.at(m)
        # The last position that the rows see is one below their own, which holds nothing.
        before: NDArray[np.int32] = np.full(m, first - 1, dtype=np.int32)
        run = Run(self.ops, self.cache, scratch, first, before, tokens=tokens, gelu_half_table=self.gelu_half_table)
        both = np.empty((m, 2 * self.n_embd), dtype=np.float32)
        self.target.graph.embed(tokens, both[:, : self.n_embd])
        both[:, self.n_embd :] = hidden
        x = self.pre_projection(both, scratch[0].x)
        for index, layer in enumerate(self.layers):
            run.enter(index, index, self.windows[index], self.kv_indices[index])
            self.run_layer(layer, x, run)
        n = run.rms_norm("result_norm", x, self.output_norm, self.eps)
        logits = self.head(n if m == 1 else n[-1:])
        return logits[0], self.post_projection(n)

    def run_layer(self, w: Layer, x: F32, run: Run) -> None:
        """On x [M, n_embd] in place."""
        window = run.window
        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        q = run.heads[0]
        w.q(h, q.reshape(run.m, -1))
        run.norm_in_place("Qcur_normed", q, w.q_norm, self.eps)
        self.turn(q, self.rope_in_window if window else self.rope, run)
        # Seen from the position before, the window is one shorter.
        attended = run.attend(q, scale=1.0, window=window - 1 if window else 0)
        y = run.linear("attn_out", w.attn_output, attended)
        run.norm_in_place("attn_post_norm", y, w.post_attention_norm, self.eps)
        h = run.add_rms_norm(("sa_out", "ffn_norm"), x, y, w.ffn_norm, self.eps)

        gate, up = run.gate_up(w.gate_up, h)
        y = run.linear("ffn_out", w.ffn_down, run.gelu_mul(gate, up))
        run.add("ffn_added", x, run.norm_in_place("ffn_post_norm", y, w.post_ffw_norm, self.eps))
        run.scale_in_place("out_scaled", x, w.output_scale)

    def turn(self, q: F32, table: RopeTable, run: Run) -> None:
        if run.m == 1:
            run.rope(q, None, table, neox=True)
            return
        cos, sin = table.at(run.first, 1)
        self.ops.rope(q, np.repeat(cos, run.m, axis=0), np.repeat(sin, run.m, axis=0), True)


def _refuse_stranger(load: Loader, target: Model) -> None:
    """A drafter reads caches of the target: widths, heads and kinds of the last two layers must be its own."""
    mine, theirs = load.hparams, target.hparams
    if theirs.architecture != "gemma4":
        raise EngineError(f"a gemma4-assistant drafts for gemma4; the target is {theirs.architecture}")
    if mine.integer("embedding_length_out") != theirs.n_embd:
        made_for = mine.integer("embedding_length_out")
        raise EngineError(f"the drafter was made for a target of width {made_for}; this one has {theirs.n_embd}")
    if tuple(target.layers) != tuple(range(theirs.n_layer)):
        raise EngineError("a drafter needs all layers of its target")
    last = theirs.n_layer - 1
    if theirs.in_window(last) or not theirs.in_window(last - 1):
        raise EngineError(
            "a gemma4-assistant takes the target's last layer for global and the one before for one in a window"
        )
    for number in range(mine.n_layer):
        source = last - 1 if mine.in_window(number) else last
        if mine.head_size(number) != theirs.head_size(source):
            raise EngineError(
                f"heads of the drafter's layer {number} have {mine.head_size(number)} elements, those of the target's "
                f"layer {source}, which it reads, {theirs.head_size(source)}"
            )
        if mine.in_window(number) and mine.integer("attention.sliding_window") < 2:
            raise EngineError("a window of one position leaves the drafter nothing to see")
