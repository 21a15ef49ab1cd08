# SPDX-License-Identifier: Apache-2.0
"""The llama graph in torch, with the tensors of a GGUF file as its parameters (names and shapes [out, in])."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass(frozen=True)
class LlamaShape:
    n_vocab: int
    n_embd: int
    n_layer: int
    n_head: int
    n_head_kv: int
    n_ff: int
    n_ctx: int = 2048
    eps: float = 1e-5
    rope_base: float = 10000.0

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head


def rms_norm(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
    normed = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return normed if weight is None else normed * weight


def rope_angles(length: int, n_rot: int, base: float, first: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and sin [length, n_rot / 2]."""
    theta = base ** (-torch.arange(0, n_rot, 2, dtype=torch.float64) / n_rot)
    angles = torch.arange(first, first + length, dtype=torch.float64)[:, None] * theta
    return angles.cos().float(), angles.sin().float()


def rope_pairs(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """NORM order: dims 2i and 2i+1 turn together. x [..., length, head_dim]."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


class LlamaTwin(nn.Module):
    def __init__(self, shape: LlamaShape, seed: int) -> None:
        super().__init__()
        self.shape = shape
        generator = torch.Generator().manual_seed(seed)
        s, kv = shape, shape.n_head_kv * shape.head_dim

        def weight(n_out: int, n_in: int, scale: float = 1.0) -> nn.Parameter:
            return nn.Parameter(torch.randn(n_out, n_in, generator=generator) * (scale / math.sqrt(n_in)))

        tensors: dict[str, nn.Parameter] = {
            "token_embd.weight": nn.Parameter(torch.randn(s.n_vocab, s.n_embd, generator=generator) * 0.02),
            "output_norm.weight": nn.Parameter(torch.ones(s.n_embd)),
        }
        for layer in range(s.n_layer):
            b, deep = f"blk.{layer}.", 1 / math.sqrt(2 * s.n_layer)
            tensors |= {
                b + "attn_norm.weight": nn.Parameter(torch.ones(s.n_embd)),
                b + "attn_q.weight": weight(s.n_embd, s.n_embd),
                b + "attn_k.weight": weight(kv, s.n_embd),
                b + "attn_v.weight": weight(kv, s.n_embd),
                b + "attn_output.weight": weight(s.n_embd, s.n_embd, deep),
                b + "ffn_norm.weight": nn.Parameter(torch.ones(s.n_embd)),
                b + "ffn_gate.weight": weight(s.n_ff, s.n_embd),
                b + "ffn_up.weight": weight(s.n_ff, s.n_embd),
                b + "ffn_down.weight": weight(s.n_embd, s.n_ff, deep),
            }
        self.names = list(tensors)
        for name, tensor in tensors.items():
            self.register_parameter(name.replace(".", "/"), tensor)

    def tensor(self, name: str) -> torch.Tensor:
        return self.get_parameter(name.replace(".", "/"))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Logits [rows, length, n_vocab] of int64 tokens [rows, length]."""
        s, t = self.shape, self.tensor
        rows, length = tokens.shape
        cos, sin = rope_angles(length, s.head_dim, s.rope_base)
        x = t("token_embd.weight")[tokens]
        for layer in range(s.n_layer):
            b = f"blk.{layer}."
            h = rms_norm(x, t(b + "attn_norm.weight"), s.eps)
            q, k, v = (
                (h @ t(b + f"attn_{part}.weight").T).view(rows, length, -1, s.head_dim).transpose(1, 2)
                for part in "qkv"
            )
            q, k = rope_pairs(q, cos, sin), rope_pairs(k, cos, sin)
            group = s.n_head // s.n_head_kv
            k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
            a = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + a.transpose(1, 2).reshape(rows, length, -1) @ t(b + "attn_output.weight").T
            h = rms_norm(x, t(b + "ffn_norm.weight"), s.eps)
            gate, up = h @ t(b + "ffn_gate.weight").T, h @ t(b + "ffn_up.weight").T
            x = x + (functional.silu(gate) * up) @ t(b + "ffn_down.weight").T
        return rms_norm(x, t("output_norm.weight"), s.eps) @ t("token_embd.weight").T
