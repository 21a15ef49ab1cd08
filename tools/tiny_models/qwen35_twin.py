# SPDX-License-Identifier: Apache-2.0
"""qwen35 (gated delta net and gated attention) and its nextn block in torch, tensors under their GGUF names.

Facts: llama.cpp b11434, src/models/qwen35.cpp and delta-net-base.cpp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch.nn import functional

from tools.tiny_models.gemma4_twin import Tensors, rope_halves
from tools.tiny_models.llama_twin import rms_norm

Held = list[tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Qwen35Shape:
    n_vocab: int = 1024
    n_embd: int = 128
    n_layer: int = 4
    interval: int = 4
    n_head: int = 4
    n_head_kv: int = 2
    head_dim: int = 32
    n_rot: int = 8
    n_ff: int = 384
    conv: int = 4
    state: int = 32
    n_k_heads: int = 2
    n_v_heads: int = 4
    rope_base: float = 1e6
    n_ctx: int = 2048
    eps: float = 1e-6

    def recurrent(self, layer: int) -> bool:
        return (layer + 1) % self.interval != 0

    @property
    def inner(self) -> int:
        return self.state * self.n_v_heads

    @property
    def channels(self) -> int:
        return 2 * self.state * self.n_k_heads + self.inner


class Qwen35Twin(Tensors):
    """The trunk; the block that predicts further tokens is ``blk.<n_layer>``."""

    def __init__(self, shape: Qwen35Shape, seed: int) -> None:
        super().__init__(seed)
        self.shape = s = shape
        self.add("token_embd.weight", torch.randn(s.n_vocab, s.n_embd, generator=self._generator) * 0.02)
        self.ones("output_norm.weight", s.n_embd)
        for layer in range(s.n_layer):
            b = f"blk.{layer}."
            if s.recurrent(layer):
                self._add_delta_net(b)
            else:
                self._add_attention(b)
            self._add_rest(b)
        b = f"blk.{s.n_layer}."
        self.trunk_names = list(self.names)
        self._add_attention(b)
        self._add_rest(b)
        self.matrix(b + "nextn.eh_proj.weight", s.n_embd, 2 * s.n_embd)
        for norm in ("enorm", "hnorm", "shared_head_norm"):
            self.ones(f"{b}nextn.{norm}.weight", s.n_embd)

    def _add_rest(self, b: str) -> None:
        s, deep = self.shape, 1 / math.sqrt(2 * self.shape.n_layer)
        self.ones(b + "attn_norm.weight", s.n_embd)
        self.ones(b + "post_attention_norm.weight", s.n_embd)
        self.matrix(b + "ffn_gate.weight", s.n_ff, s.n_embd)
        self.matrix(b + "ffn_up.weight", s.n_ff, s.n_embd)
        self.matrix(b + "ffn_down.weight", s.n_embd, s.n_ff, deep)

    def _add_attention(self, b: str) -> None:
        s = self.shape
        self.matrix(b + "attn_q.weight", 2 * s.n_head * s.head_dim, s.n_embd)
        self.matrix(b + "attn_k.weight", s.n_head_kv * s.head_dim, s.n_embd)
        self.matrix(b + "attn_v.weight", s.n_head_kv * s.head_dim, s.n_embd)
        self.matrix(b + "attn_output.weight", s.n_embd, s.n_head * s.head_dim)
        self.ones(b + "attn_q_norm.weight", s.head_dim)
        self.ones(b + "attn_k_norm.weight", s.head_dim)

    def _add_delta_net(self, b: str) -> None:
        s = self.shape
        self.matrix(b + "attn_qkv.weight", s.channels, s.n_embd)
        self.matrix(b + "attn_gate.weight", s.inner, s.n_embd)
        self.matrix(b + "ssm_conv1d.weight", s.channels, s.conv)
        self.matrix(b + "ssm_beta.weight", s.n_v_heads, s.n_embd)
        self.matrix(b + "ssm_alpha.weight", s.n_v_heads, s.n_embd)
        self.add(b + "ssm_dt.bias", torch.linspace(-4.0, 0.0, s.n_v_heads))
        self.ones(b + "ssm_a", s.n_v_heads, -1.0)
        self.ones(b + "ssm_norm.weight", s.state)
        self.matrix(b + "ssm_out.weight", s.n_embd, s.inner)

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [rows, length, n_vocab] and hidden state behind the final norm [rows, length, n_embd]."""
        s, t = self.shape, self.tensor
        length = tokens.shape[1]
        positions = torch.arange(length)
        mask = positions[:, None] >= positions
        x = t("token_embd.weight")[tokens]
        for layer in range(s.n_layer):
            b = f"blk.{layer}."
            h = rms_norm(x, t(b + "attn_norm.weight"), s.eps)
            if s.recurrent(layer):
                x = x + self._delta_net(b, h)
            else:
                q, gate, k, v = self._queries(b, h, positions)
                x = x + self._gated(b, _attend(q, k, v, mask), gate)
            x = x + self._ffn(b, x)
        hidden = rms_norm(x, t("output_norm.weight"), s.eps)
        return hidden @ t("token_embd.weight").T, hidden

    def nextn(
        self, tokens: torch.Tensor, hidden: torch.Tensor, positions: torch.Tensor, held: Held
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One step of a draft begun at every position at once; ``held`` grows by this step's keys and values.

        Row i of step 1 takes token i and the hidden state of i - 1 and attends to all rows of step 1 up to i; row i of
        step j takes token i + j - 1 and attends to row i of the steps between as well.
        """
        s, t = self.shape, self.tensor
        b = f"blk.{s.n_layer}."
        e = rms_norm(t("token_embd.weight")[tokens], t(b + "nextn.enorm.weight"), s.eps)
        h = rms_norm(hidden, t(b + "nextn.hnorm.weight"), s.eps)
        x = self.linear(b + "nextn.eh_proj.weight", torch.cat((e, h), -1))
        q, gate, k, v = self._queries(b, rms_norm(x, t(b + "attn_norm.weight"), s.eps), positions)
        held.append((k, v))
        x = x + self._gated(b, _attend_steps(q, held), gate)
        x = x + self._ffn(b, x)
        n = rms_norm(x, t(b + "nextn.shared_head_norm.weight"), s.eps)
        return n @ t("token_embd.weight").T, n

    def _ffn(self, b: str, x: torch.Tensor) -> torch.Tensor:
        h = rms_norm(x, self.tensor(b + "post_attention_norm.weight"), self.shape.eps)
        gate, up = self.linear(b + "ffn_gate.weight", h), self.linear(b + "ffn_up.weight", h)
        return self.linear(b + "ffn_down.weight", functional.silu(gate) * up)

    def _queries(
        self, b: str, h: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        s, t = self.shape, self.tensor
        rows, length, _ = h.shape
        both = self.linear(b + "attn_q.weight", h).view(rows, length, s.n_head, 2 * s.head_dim)
        q, gate = both[..., : s.head_dim].transpose(1, 2), both[..., s.head_dim :].reshape(rows, length, -1)
        k, v = (
            self.linear(b + f"attn_{part}.weight", h).view(rows, length, -1, s.head_dim).transpose(1, 2)
            for part in "kv"
        )
        q = self._rope(rms_norm(q, t(b + "attn_q_norm.weight"), s.eps), positions)
        k = self._rope(rms_norm(k, t(b + "attn_k_norm.weight"), s.eps), positions)
        group = s.n_head // s.n_head_kv
        return q, gate, k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)

    def _rope(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        n = self.shape.n_rot
        return torch.cat((rope_halves(x[..., :n], self.shape.rope_base, None, positions), x[..., n:]), -1)

    def _gated(self, b: str, a: torch.Tensor, gate: torch.Tensor) -> torch.Tensor:
        return self.linear(b + "attn_output.weight", a.transpose(1, 2).flatten(2) * torch.sigmoid(gate))

    def _delta_net(self, b: str, h: torch.Tensor) -> torch.Tensor:
        s, t = self.shape, self.tensor
        rows, length, _ = h.shape
        mixed = self.linear(b + "attn_qkv.weight", h).transpose(1, 2)
        mixed = functional.conv1d(
            functional.pad(mixed, (s.conv - 1, 0)), t(b + "ssm_conv1d.weight")[:, None], groups=s.channels
        )
        mixed = functional.silu(mixed).transpose(1, 2)
        q, k, v = mixed.split((s.state * s.n_k_heads, s.state * s.n_k_heads, s.inner), -1)
        q, k, v = (part.reshape(rows, length, -1, s.state).transpose(1, 2) for part in (q, k, v))
        q, k = (part * torch.rsqrt(part.pow(2).sum(-1, keepdim=True) + s.eps) for part in (q, k))
        # Head i of v goes with head i % n_k_heads of q and k.
        q, k = (part.repeat(1, s.n_v_heads // s.n_k_heads, 1, 1) for part in (q, k))
        beta = torch.sigmoid(self.linear(b + "ssm_beta.weight", h)).transpose(1, 2)
        decay = functional.softplus(self.linear(b + "ssm_alpha.weight", h) + t(b + "ssm_dt.bias")) * t(b + "ssm_a")
        a = delta_rule(q, k, v, beta, decay.transpose(1, 2)).transpose(1, 2) / math.sqrt(s.state)
        z = self.linear(b + "attn_gate.weight", h).view(rows, length, s.n_v_heads, s.state)
        a = rms_norm(a, t(b + "ssm_norm.weight"), s.eps) * functional.silu(z)
        return self.linear(b + "ssm_out.weight", a.flatten(2))


def delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, decay: torch.Tensor
) -> torch.Tensor:
    """The gated delta rule over a whole text at once: [rows, heads, length, state].

    S <- exp(decay) S, then S <- S + k (beta (v - k S)), then out = q S, token by token, unrolled: the corrections u
    solve one triangular system. ``beta``, ``decay`` [rows, heads, length].
    """
    length = q.shape[2]
    total = decay.cumsum(-1)
    past = torch.ones(length, length, dtype=torch.bool).tril()
    kept = (total[..., :, None] - total[..., None, :]).masked_fill(~past, -math.inf).exp()
    system = (k @ k.transpose(-1, -2) * kept * beta[..., None]).tril(-1)
    u = torch.linalg.solve_triangular(system, v * beta[..., None], upper=False, unitriangular=True)
    return (q @ k.transpose(-1, -2) * kept) @ u


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def _attend_steps(q: torch.Tensor, held: Held) -> torch.Tensor:
    """Attention over all rows of the first step up to each row, and over the row itself of the later ones."""
    scale = 1 / math.sqrt(q.shape[-1])
    positions = torch.arange(q.shape[2])
    first_k, first_v = held[0]
    scores = (q @ first_k.transpose(-1, -2) * scale).masked_fill(positions[:, None] < positions, -math.inf)
    later = [(q * k).sum(-1, keepdim=True) * scale for k, _ in held[1:]]
    weights = torch.softmax(torch.cat([scores, *later], -1), -1)
    out = weights[..., : q.shape[2]] @ first_v
    for i, (_, v) in enumerate(held[1:]):
        out = out + weights[..., q.shape[2] + i, None] * v
    return out
