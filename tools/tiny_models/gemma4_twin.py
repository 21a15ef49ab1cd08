# SPDX-License-Identifier: Apache-2.0
"""gemma4 (dense) and its drafter gemma4-assistant in torch, with the tensors of their GGUF files as parameters.

Facts: llama.cpp b11434, src/models/gemma4.cpp and gemma4-assistant.cpp. Every feature of the dense family is in:
embeddings for each layer, layers that read the keys and values of earlier ones, V = K where there is no attn_v, two
RoPE bases with factors of 1e30 on global layers, soft cap, layer scales, a wider FFN in layers that share.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from tools.tiny_models.llama_twin import rms_norm


@dataclass(frozen=True)
class Gemma4Shape:
    n_vocab: int = 1024
    n_embd: int = 128
    in_window: tuple[bool, ...] = (True, False, True, False, True, False)
    n_shared: int = 2
    n_head: int = 4
    n_head_kv: tuple[int, int] = (2, 1)  # in a window, global
    head_dim: tuple[int, int] = (32, 64)
    n_ff: tuple[int, int] = (256, 512)  # layers with keys of their own, layers that share
    n_per_layer: int = 32
    window: int = 64
    rope_base: tuple[float, float] = (1e4, 1e6)
    softcap: float = 30.0
    n_ctx: int = 2048
    eps: float = 1e-6

    @property
    def n_layer(self) -> int:
        return len(self.in_window)

    @property
    def first_shared(self) -> int:
        return self.n_layer - self.n_shared

    def kind(self, layer: int) -> int:
        """0 in a window, 1 global: index into the pairs above."""
        return 0 if self.in_window[layer] else 1

    def source(self, layer: int) -> int:
        """The layer whose keys and values this one reads."""
        if layer < self.first_shared:
            return layer
        return self.first_shared - (2 if self.in_window[layer] else 1)


@dataclass(frozen=True)
class AssistantShape:
    n_embd: int = 96  # not the target's: llama.cpp refuses that
    in_window: tuple[bool, ...] = (True, False)
    n_head: int = 4
    n_ff: int = 256


class Tensors(nn.Module):
    """Parameters under their GGUF names."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.names: list[str] = []
        self._generator = torch.Generator().manual_seed(seed)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        self.names.append(name)
        self.register_parameter(name.replace(".", "/"), nn.Parameter(tensor))

    def matrix(self, name: str, n_out: int, n_in: int, scale: float = 1.0) -> None:
        self.add(name, torch.randn(n_out, n_in, generator=self._generator) * (scale / math.sqrt(n_in)))

    def ones(self, name: str, n: int, value: float = 1.0) -> None:
        self.add(name, torch.full((n,), value))

    def tensor(self, name: str) -> torch.Tensor:
        return self.get_parameter(name.replace(".", "/"))

    def linear(self, name: str, x: torch.Tensor) -> torch.Tensor:
        return x @ self.tensor(name).T


def rope_factors(head_dim: int) -> torch.Tensor:
    """[head_dim / 2]: a quarter of the head turns; 1e30 stands for not at all."""
    turning = head_dim // 8
    return torch.cat((torch.ones(turning), torch.full((head_dim // 2 - turning,), 1e30)))


def rope_halves(x: torch.Tensor, base: float, factors: torch.Tensor | None, positions: torch.Tensor) -> torch.Tensor:
    """NEOX order: dims i and i + head_dim / 2 turn together. x [rows, heads, length, head_dim]."""
    dim = x.shape[-1]
    theta = base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    if factors is not None:
        theta = theta / factors.double()
    angles = positions.double()[:, None] * theta
    cos, sin = angles.cos().float(), angles.sin().float()
    low, high = x[..., : dim // 2], x[..., dim // 2 :]
    return torch.cat((low * cos - high * sin, high * cos + low * sin), -1)


def gelu(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


class Gemma4Twin(Tensors):
    def __init__(self, shape: Gemma4Shape, seed: int) -> None:
        super().__init__(seed)
        self.shape = s = shape
        self.matrix("token_embd.weight", s.n_vocab, s.n_embd, 0.5)
        self.ones("output_norm.weight", s.n_embd)
        self.matrix("per_layer_token_embd.weight", s.n_vocab, s.n_per_layer * s.n_layer, 0.5)
        self.matrix("per_layer_model_proj.weight", s.n_per_layer * s.n_layer, s.n_embd)
        self.ones("per_layer_proj_norm.weight", s.n_per_layer)
        for layer in range(s.n_layer):
            b, kind, own = f"blk.{layer}.", s.kind(layer), layer < s.first_shared
            dim, ff = s.head_dim[kind], s.n_ff[0 if own else 1]
            for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "post_norm"):
                self.ones(f"{b}{norm}.weight", s.n_embd)
            self.matrix(b + "attn_q.weight", s.n_head * dim, s.n_embd)
            self.ones(b + "attn_q_norm.weight", dim)
            if own:
                self.matrix(b + "attn_k.weight", s.n_head_kv[kind] * dim, s.n_embd)
                self.ones(b + "attn_k_norm.weight", dim)
                if s.in_window[layer]:
                    self.matrix(b + "attn_v.weight", s.n_head_kv[kind] * dim, s.n_embd)
            self.matrix(b + "attn_output.weight", s.n_embd, s.n_head * dim)
            self.matrix(b + "ffn_gate.weight", ff, s.n_embd)
            self.matrix(b + "ffn_up.weight", ff, s.n_embd)
            self.matrix(b + "ffn_down.weight", s.n_embd, ff)
            self.matrix(b + "inp_gate.weight", s.n_per_layer, s.n_embd)
            self.matrix(b + "proj.weight", s.n_embd, s.n_per_layer)
            self.ones(b + "layer_output_scale.weight", 1)
        self.register_buffer("rope_freqs", rope_factors(s.head_dim[1]))

    def gguf_tensors(self) -> dict[str, torch.Tensor]:
        return {name: self.tensor(name) for name in self.names} | {"rope_freqs.weight": self.rope_freqs}

    def forward(
        self, tokens: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, list[tuple[torch.Tensor, torch.Tensor]]]:
        """Logits [rows, length, n_vocab], hidden [rows, length, n_embd], and (k, v) by layer that has its own."""
        s, t = self.shape, self.tensor
        rows, length = tokens.shape
        positions = torch.arange(length)
        distance = positions[:, None] - positions
        masks = ((distance >= 0) & (distance < s.window), distance >= 0)
        x = t("token_embd.weight")[tokens] * math.sqrt(s.n_embd)
        chosen = t("per_layer_token_embd.weight")[tokens].view(rows, length, s.n_layer, s.n_per_layer)
        projected = (self.linear("per_layer_model_proj.weight", x) / math.sqrt(s.n_embd)).view_as(chosen)
        projected = rms_norm(projected, t("per_layer_proj_norm.weight"), s.eps)
        per_layer = (projected + chosen * math.sqrt(s.n_per_layer)) / math.sqrt(2)
        held: list[tuple[torch.Tensor, torch.Tensor]] = []
        for layer in range(s.n_layer):
            b, kind = f"blk.{layer}.", s.kind(layer)
            dim, base = s.head_dim[kind], s.rope_base[kind]
            factors = None if kind == 0 else self.rope_freqs
            h = rms_norm(x, t(b + "attn_norm.weight"), s.eps)
            q = self.linear(b + "attn_q.weight", h).view(rows, length, -1, dim).transpose(1, 2)
            q = rope_halves(rms_norm(q, t(b + "attn_q_norm.weight"), s.eps), base, factors, positions)
            if layer < s.first_shared:
                raw = self.linear(b + "attn_k.weight", h).view(rows, length, -1, dim).transpose(1, 2)
                value = raw
                if s.in_window[layer]:
                    value = self.linear(b + "attn_v.weight", h).view(rows, length, -1, dim).transpose(1, 2)
                k = rope_halves(rms_norm(raw, t(b + "attn_k_norm.weight"), s.eps), base, factors, positions)
                held.append((k, rms_norm(value, None, s.eps)))
            k, v = held[s.source(layer)]
            a = attend(q, k, v, masks[kind])
            y = self.linear(b + "attn_output.weight", a)
            x = x + rms_norm(y, t(b + "post_attention_norm.weight"), s.eps)
            h = rms_norm(x, t(b + "ffn_norm.weight"), s.eps)
            y = gelu(self.linear(b + "ffn_gate.weight", h)) * self.linear(b + "ffn_up.weight", h)
            x = x + rms_norm(self.linear(b + "ffn_down.weight", y), t(b + "post_ffw_norm.weight"), s.eps)
            y = gelu(self.linear(b + "inp_gate.weight", x)) * per_layer[:, :, layer]
            x = x + rms_norm(self.linear(b + "proj.weight", y), t(b + "post_norm.weight"), s.eps)
            x = x * t(b + "layer_output_scale.weight")
        hidden = rms_norm(x, t("output_norm.weight"), s.eps)
        logits = hidden @ t("token_embd.weight").T
        return s.softcap * torch.tanh(logits / s.softcap), hidden, held


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """[rows, length, heads * head_dim]; scores are not scaled (gemma4 norms q and k)."""
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    a = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=1.0)
    return a.transpose(1, 2).flatten(2)


class AssistantTwin(Tensors):
    """The drafter: queries only, on keys and values of the target; one position for all tokens of a draft."""

    def __init__(self, shape: AssistantShape, target: Gemma4Shape, seed: int) -> None:
        super().__init__(seed)
        self.shape, self.target = s, t = shape, target
        self.matrix("token_embd.weight", t.n_vocab, s.n_embd)
        self.ones("output_norm.weight", s.n_embd)
        self.matrix("nextn.pre_projection.weight", s.n_embd, 2 * t.n_embd)
        self.matrix("nextn.post_projection.weight", t.n_embd, s.n_embd)
        for layer, in_window in enumerate(s.in_window):
            b, dim = f"blk.{layer}.", t.head_dim[0 if in_window else 1]
            for norm in ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"):
                self.ones(f"{b}{norm}.weight", s.n_embd)
            self.matrix(b + "attn_q.weight", s.n_head * dim, s.n_embd)
            self.ones(b + "attn_q_norm.weight", dim)
            self.matrix(b + "attn_output.weight", s.n_embd, s.n_head * dim)
            self.matrix(b + "ffn_gate.weight", s.n_ff, s.n_embd)
            self.matrix(b + "ffn_up.weight", s.n_ff, s.n_embd)
            self.matrix(b + "ffn_down.weight", s.n_embd, s.n_ff)
            self.ones(b + "layer_output_scale.weight", 1)
        self.register_buffer("rope_freqs", rope_factors(t.head_dim[1]))

    def gguf_tensors(self) -> dict[str, torch.Tensor]:
        return {name: self.tensor(name) for name in self.names} | {"rope_freqs.weight": self.rope_freqs}

    def step(
        self,
        embedded: torch.Tensor,
        hidden: torch.Tensor,
        held: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One token of a draft at every position p of the text at once: logits and the next hidden state.

        ``embedded``, ``hidden`` [rows, length, n_embd of the target]: the target's embedding of the token before, times
        sqrt(n_embd), and the hidden state before it. Row p attends to the target's positions below p.
        """
        s, t, target = self.shape, self.tensor, self.target
        length = embedded.shape[1]
        positions = torch.arange(length)
        distance = positions[:, None] - positions
        x = self.linear("nextn.pre_projection.weight", torch.cat((embedded, hidden), -1))
        for layer, in_window in enumerate(s.in_window):
            b, kind = f"blk.{layer}.", 0 if in_window else 1
            dim = target.head_dim[kind]
            mask = (distance > 0) & (distance < target.window) if in_window else distance > 0
            h = rms_norm(x, t(b + "attn_norm.weight"), target.eps)
            q = self.linear(b + "attn_q.weight", h).view(*x.shape[:2], -1, dim).transpose(1, 2)
            factors = None if in_window else self.rope_freqs
            q = rope_halves(
                rms_norm(q, t(b + "attn_q_norm.weight"), target.eps), target.rope_base[kind], factors, positions
            )
            k, v = held[target.source(target.n_layer - (2 if in_window else 1))]
            # The first row has nothing before it; it attends to itself here and is left out of every loss.
            a = attend(q, k, v, mask | torch.eye(length, dtype=torch.bool)[:, :] & (positions == 0))
            x = x + rms_norm(self.linear(b + "attn_output.weight", a), t(b + "post_attention_norm.weight"), target.eps)
            h = rms_norm(x, t(b + "ffn_norm.weight"), target.eps)
            y = gelu(self.linear(b + "ffn_gate.weight", h)) * self.linear(b + "ffn_up.weight", h)
            x = x + rms_norm(self.linear(b + "ffn_down.weight", y), t(b + "post_ffw_norm.weight"), target.eps)
            x = x * t(b + "layer_output_scale.weight")
        n = rms_norm(x, t("output_norm.weight"), target.eps)
        return n @ t("token_embd.weight").T, self.linear("nextn.post_projection.weight", n)
