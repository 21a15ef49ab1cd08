# SPDX-License-Identifier: Apache-2.0
"""RoPE, attention, norms and activations in float64, as the files' own hyper-parameters say. Pure, by trace arrays.

Facts: llama.cpp b11434 (src/models, ggml-cpu/ops.cpp). RoPE turns pair i by position * base^(-2 i / n_rot) over its
factor; a layer in a window of n sees the n positions up to its own; query head h reads key head h * kv_heads // heads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]


@dataclass(frozen=True)
class Turn:
    """``neox``: pairs (i, i + n_rot / 2), else (2 i, 2 i + 1). ``factors`` float64 [n_rot / 2] or None."""

    n_rot: int
    base: float
    neox: bool
    scale: float = 1.0
    factors: F64 | None = None
    shift: int = 0

    def __call__(self, heads: F64, positions: NDArray[np.int64]) -> F64:
        """heads [M, heads, D] turned by their positions [M]."""
        half = self.n_rot // 2
        angles = (positions[:, None] + self.shift) * self.base ** (-2.0 * np.arange(half) / self.n_rot)
        if self.factors is not None:
            angles = angles / self.factors
        angles = angles * self.scale
        cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
        first = np.arange(half) if self.neox else 2 * np.arange(half)
        second = first + (half if self.neox else 1)
        turned: F64 = heads.copy()
        turned[..., first] = heads[..., first] * cos - heads[..., second] * sin
        turned[..., second] = heads[..., first] * sin + heads[..., second] * cos
        return turned


def mistaken_turns(turn: Turn, bases: tuple[float, ...]) -> dict[str, Turn]:
    """Wrong turns by the words for the fault."""
    found = {f"by the RoPE base {b:g} instead of {turn.base:g}": replace(turn, base=b) for b in bases if b != turn.base}
    found["with RoPE positions that are off by one"] = replace(turn, shift=1)
    found["with RoPE positions that are off by one (before)"] = replace(turn, shift=-1)
    found["with RoPE pairs of the other kind"] = replace(turn, neox=not turn.neox)
    found["without RoPE"] = replace(turn, scale=0.0)
    if turn.factors is not None:
        found["without RoPE's frequency factors"] = replace(turn, factors=None)
    return found


@dataclass(frozen=True)
class Look:
    """How a layer attends: ``scale`` of the scores, ``window`` 0 for all, ``softcap`` 0 for none."""

    scale: float
    window: int = 0
    softcap: float = 0.0
    causal: bool = True

    def __call__(self, q: F64, k: F64, v: F64) -> F64:
        """q [M, heads, D], k and v [M, kv_heads, D], all positions from 0 on: [M, heads * Dv]."""
        m, heads, _ = q.shape
        group = heads // k.shape[1]
        at = np.arange(m)
        seen = at[None, :] <= at[:, None] if self.causal else np.ones((m, m), bool)
        if self.window:
            seen &= at[:, None] - at[None, :] < self.window
        out = np.empty((m, heads, v.shape[2]))
        for head in range(heads):
            scores = self.scale * (q[:, head] @ k[:, head // group].T)
            if self.softcap:
                scores = self.softcap * np.tanh(scores / self.softcap)
            scores = np.where(seen, scores, -np.inf)
            weights = np.exp(scores - scores.max(axis=1, keepdims=True))
            out[:, head] = (weights / weights.sum(axis=1, keepdims=True)) @ v[:, head // group]
        return out.reshape(m, -1)


def mistaken_looks(look: Look) -> dict[str, Look]:
    """Wrong ways to attend, by the words for the fault."""
    found = {"the scores have another scale": replace(look, scale=look.scale / 2)}
    if look.window:
        wide, narrow = look.window + 1, look.window - 1
        found |= {
            f"the window is off by one: {wide} positions instead of {look.window}": replace(look, window=wide),
            f"the window is off by one: {narrow} positions instead of {look.window}": replace(look, window=narrow),
            "the window is ignored": replace(look, window=0),
        }
    found["later positions are not masked"] = replace(look, causal=False)
    return found


def rms_norm(x: F64, weight: F64, eps: float) -> F64:
    """Over the last axis."""
    normed: F64 = x / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + eps) * weight
    return normed


def silu(x: F64) -> F64:
    """x / (1 + exp(-x))."""
    return x / (1.0 + np.exp(-x))


def gelu(x: F64) -> F64:
    """The tanh form, which all these models have."""
    found: F64 = 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * x * (1.0 + 0.044715 * np.square(x))))
    return found


def far(found: F64, want: F64, relative: float) -> tuple[int, float] | None:
    """The first row that is further from ``want`` than a share of its own largest element, and by what share."""
    size = np.abs(want).reshape(len(want), -1).max(axis=1) + 1e-30
    share = np.abs(found - want).reshape(len(want), -1).max(axis=1) / size
    wrong = ~(share <= relative)
    return (int(np.argmax(wrong)), float(share[np.argmax(wrong)])) if wrong.any() else None
