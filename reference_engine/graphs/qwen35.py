# SPDX-License-Identifier: Apache-2.0
"""qwen35 (dense): three layers of gated delta net to one of gated attention, and a block that predicts further tokens.

Facts: llama.cpp b11434 src/models/qwen35.cpp, delta-net-base.cpp. attn_q holds query and gate of each head side by
side; RoPE turns the first rope.dimension_count elements of a head (for text the three positions of M-RoPE are one, so
that rope.dimension_sections has no say). The norm before the FFN is post_attention_norm. ssm_a is -exp(A_log) already.
The nextn block is the layer behind the last one; it takes the hidden state behind the final norm.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.backends import dequantize_rows
from reference_engine.graphs.common import Graph, RopeTable, Run, inverse_root, optional_number, rope_table
from reference_engine.kv_cache import KvCache
from reference_engine.recurrent_state import Deltas, RecurrentState
from reference_engine.workspace import Workspace, layer_shape

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.graphs.common import F32
    from reference_engine.model import Model
    from reference_engine.weights import Loader


class Ffn:
    """What both kinds of layers, and the nextn block, end with."""

    def __init__(self, load: Loader, number: int) -> None:
        name = f"blk.{number}."
        self.attn_norm = load.vector(name + "attn_norm.weight")
        self.post_attention_norm = load.vector(name + "post_attention_norm.weight")
        self.gate_up = load.group(name + "ffn_gate.weight", name + "ffn_up.weight")
        self.ffn_down = load.linear(name + "ffn_down.weight")


class AttentionLayer(Ffn):
    def __init__(self, load: Loader, number: int) -> None:
        super().__init__(load, number)
        name, hparams = f"blk.{number}.", load.hparams
        self.size, self.heads = hparams.head_size(number), hparams.layers("attention.head_count")[number]
        self.qkv = load.group(name + "attn_q.weight", name + "attn_k.weight", name + "attn_v.weight")
        self.q_norm = load.vector(name + "attn_q_norm.weight")
        self.k_norm = load.vector(name + "attn_k_norm.weight")
        self.attn_output = load.linear(name + "attn_output.weight")
        # 0 stands for: not given.
        self.scale = optional_number(hparams, "attention.scale", 0.0) or inverse_root(self.size)


class DeltaNetLayer(Ffn):
    def __init__(self, load: Loader, number: int) -> None:
        super().__init__(load, number)
        name = f"blk.{number}."
        self.qkv_z = load.group(name + "attn_qkv.weight", name + "attn_gate.weight")
        self.beta_alpha = load.group(name + "ssm_beta.weight", name + "ssm_alpha.weight")
        self.conv = np.ascontiguousarray(load.matrix(name + "ssm_conv1d.weight").T)  # [kernel, channels]
        self.dt = load.vector(name + "ssm_dt.bias")
        self.a = load.vector(name + "ssm_a")
        self.ssm_norm = load.vector(name + "ssm_norm.weight")
        self.ssm_out = load.linear(name + "ssm_out.weight")


class Qwen35Graph(Graph):
    def __init__(self, load: Loader) -> None:
        super().__init__(load)
        hparams = load.hparams
        self.rope = rope_table(load)
        self.state_size = hparams.integer("ssm.state_size")
        self.k_heads, self.v_heads = hparams.integer("ssm.group_count"), hparams.integer("ssm.time_step_rank")
        self.kernel = hparams.integer("ssm.conv_kernel")
        self.recurrent = tuple(hparams.recurrent(number) for number in load.layers)
        self.layers = [
            DeltaNetLayer(load, number) if hparams.recurrent(number) else AttentionLayer(load, number)
            for number in load.layers
        ]
        self.nextn = NextnBlock(load, self) if hparams.n_layer_all > hparams.n_layer and load.head else None

    @property
    def channels(self) -> int:
        return (2 * self.k_heads + self.v_heads) * self.state_size

    def new_states(self) -> list[RecurrentState | None]:
        shape = self.v_heads, self.state_size, self.kernel, self.channels
        return [RecurrentState(*shape) if recurrent else None for recurrent in self.recurrent]

    def run_layer(self, index: int, x: F32, run: Run) -> None:
        w = self.layers[index]
        h = run.rms_norm("attn_norm", x, w.attn_norm, self.eps)
        if isinstance(w, AttentionLayer):
            y = gated_attention(w, h, run, self.rope, self.eps)
        else:
            y = self.delta_net(w, h, run, run.state(index))
        feed_forward(w, x, y, run, self.eps)

    def delta_net(self, w: DeltaNetLayer, h: F32, run: Run, state: RecurrentState) -> F32:
        """[M, n_embd] -> [M, n_embd]; tokens one after the other, so that a batch leaves no trace."""
        ops, m, size = run.ops, len(h), self.state_size
        mixed, z = w.qkv_z(h)
        beta, alpha = w.beta_alpha(h)
        beta = ops.sigmoid(beta)
        decay = ops.exp(ops.mul(ops.softplus(ops.add(alpha, w.dt)), w.a))
        whole = state.begin(mixed)
        convolved = whole[:m] * w.conv[0]
        for j in range(1, self.kernel):
            convolved += whole[j : j + m] * w.conv[j]
        convolved = ops.silu(convolved)
        run.show("conv_output_silu", convolved)
        width = self.k_heads * size
        parts = convolved[:, :width], convolved[:, width : 2 * width], convolved[:, 2 * width :]
        q, k, v = (np.ascontiguousarray(part).reshape(m, -1, size) for part in parts)
        # x / sqrt(sum of squares + eps), as ggml has it; queries are scaled by 1 / sqrt(size) once more.
        root = inverse_root(size)
        q, k = (ops.scale(ops.rms_norm(part, None, self.eps / size), root) for part in (q, k))
        # Head i of v goes with head i % k_heads of q and k: the converter has ordered them so.
        repeats = self.v_heads // self.k_heads
        q = ops.scale(q, root)
        if repeats > 1:
            q, k = (np.concatenate((part,) * repeats, axis=1) for part in (q, k))
        out = state.advance(q, Deltas(k, v, beta, decay))
        run.show("linear_attn_state_out", out)
        normed = ops.rms_norm(out, w.ssm_norm, self.eps)
        gated = ops.mul(normed, ops.silu(z.reshape(out.shape)))
        return run.linear("linear_attn_out", w.ssm_out, np.ascontiguousarray(gated.reshape(m, -1)))


def gated_attention(w: AttentionLayer, h: F32, run: Run, rope: RopeTable, eps: float) -> F32:
    """[M, n_embd] -> [M, n_embd]."""
    m = len(h)
    q, k, v = run.heads
    both = np.empty((m, w.heads, 2 * w.size), dtype=np.float32)
    w.qkv(h, (both.reshape(m, -1), k.reshape(m, -1), v.reshape(m, -1)))
    q[...] = both[:, :, : w.size]
    gate = np.ascontiguousarray(both[:, :, w.size :]).reshape(m, -1)
    run.norm_in_place("Qcur_normed", q, w.q_norm, eps)
    run.norm_in_place("Kcur_normed", k, w.k_norm, eps)
    run.rope(q, k, rope, neox=True)
    attended = run.attention(q, k, v, scale=w.scale)
    gated = run.ops.mul(attended, run.ops.sigmoid(gate))
    run.show("attn_gated", gated)
    return run.linear("attn_output", w.attn_output, gated)


def feed_forward(w: Ffn, x: F32, y: F32, run: Run, eps: float) -> None:
    """x += y, then the FFN of it, on x [M, n_embd] in place."""
    h = run.add_rms_norm(("attn_residual", "attn_post_norm"), x, y, w.post_attention_norm, eps)
    gate, up = run.gate_up(w.gate_up, h)
    y = run.linear("ffn_out", w.ffn_down, run.silu_mul(gate, up))
    run.add("l_out", x, y)


class NextnBlock:
    """The block that predicts a further token from the hidden state of the one before; weights alone."""

    def __init__(self, load: Loader, graph: Qwen35Graph) -> None:
        number = load.hparams.n_layer
        name = f"blk.{number}."
        self.number = number
        self.layer = AttentionLayer(load, number)
        self.eh_proj = load.linear(name + "nextn.eh_proj.weight")
        self.enorm = load.vector(name + "nextn.enorm.weight")
        self.hnorm = load.vector(name + "nextn.hnorm.weight")
        own_norm = name + "nextn.shared_head_norm.weight"
        self.norm = load.vector(own_norm) if load.has(own_norm) else graph.output_norm
        own_head = name + "nextn.shared_head_head.weight"
        self.head = load.linear(own_head) if load.has(own_head) else graph.head
        own_embedding = name + "nextn.embed_tokens.weight"
        self.embedding = load.tensor(own_embedding) if load.has(own_embedding) else graph.embedding
        self.rope = rope_table(load)
        self.eps = graph.eps


class NextnHead:
    """The nextn block with keys and values of its own: an MtpHead of reference_engine.speculation.mtp."""

    shared_memory = False
    n_heads = 1

    def __init__(self, model: Model, block: NextnBlock) -> None:
        hparams = model.hparams
        self.model, self.block, self.n_embd = model, block, model.n_embd
        shape = layer_shape(hparams, block.number)
        self._shape = shape
        self.workspace = Workspace([shape], model.backend.kernels)
        self.cache = self._new_cache()

    def anew(self) -> NextnHead:
        """The same block with nothing remembered."""
        other = copy.copy(self)
        other.cache = self._new_cache()
        return other

    def truncate(self, n_past: int) -> None:
        if n_past < self.cache.n_past:
            self.cache.truncate(n_past)

    def decode(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> tuple[F32, F32]:
        """In chunks that change no bit, as the trunk computes."""
        states = self._pass(tokens, hidden, first)
        assert self.block.head is not None
        return self.block.head(np.ascontiguousarray(states[-1:]))[0], states

    def fill(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> None:
        self._pass(tokens, hidden, first)

    def _pass(self, tokens: Sequence[int], hidden: F32, first: int) -> F32:
        self.truncate(first)
        parts = [
            self._chunk(tokens[at : at + _CHUNK], hidden[at : at + _CHUNK], first + at)
            for at in range(0, len(tokens), _CHUNK)
        ]
        return np.concatenate(parts)

    def _chunk(self, tokens: Sequence[int], hidden: F32, first: int) -> F32:
        b, ops, m = self.block, self.model.ops, len(tokens)
        positions: NDArray[np.int32] = np.arange(first, first + m, dtype=np.int32)
        run = Run(ops, self.cache, self.workspace.at(m), first, positions, tokens=tokens, flash=self.model.flash)
        run.enter(0, b.number, 0, 0)
        rows = dequantize_rows(b.embedding, np.asarray(tokens, dtype=np.int64), self.model.backend.kernels)
        e = ops.rms_norm(rows, b.enorm, b.eps)
        h = ops.rms_norm(np.ascontiguousarray(hidden), b.hnorm, b.eps)
        x = b.eh_proj(np.concatenate((e, h), axis=1))
        y = gated_attention(b.layer, run.rms_norm("mtp_attn_norm", x, b.layer.attn_norm, b.eps), run, b.rope, b.eps)
        feed_forward(b.layer, x, y, run, b.eps)
        self.cache.n_past = first + m
        return ops.rms_norm(x, b.norm, b.eps)

    def _new_cache(self) -> KvCache:
        m, shape = self.model, self._shape
        return KvCache(
            1,
            shape.kv_heads,
            shape.key,
            m.n_ctx,
            type_k=m.kv.type_k,
            type_v=m.kv.type_v,
            rotate=m.kv.rotate,
            head_dim_v=shape.value,
            n_batch=_CHUNK,
            kernels=m.backend.kernels,
            threads=m.threads,
        )


_CHUNK = 256
