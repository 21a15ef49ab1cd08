# SPDX-License-Identifier: Apache-2.0
"""Forward passes in float64, written from the papers' formulas, to hold the engine's graphs against.

One sequence, no cache, plain matrices; nothing of the engine is used. What each architecture does differently stands in
``forward`` as a condition on its name, in the order in which it happens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.gguf.random_models import CONTEXT, EPSILON, WINDOW, Recipe

F64 = NDArray[np.float64]


def forward(recipe: Recipe, tokens: Sequence[int]) -> F64:
    """Logits [tokens, vocab], read-only."""
    return _forward(recipe, tuple(tokens))


@cache
def _forward(recipe: Recipe, tokens: tuple[int, ...]) -> F64:
    w = recipe.weights()
    key = {name: value for name, (_, value) in recipe.keys().items()}
    gemma = recipe.architecture.startswith("gemma")
    x = w["token_embd.weight"][list(tokens)] * (math.sqrt(recipe.embd) if gemma else 1.0)
    factors = w.get("rope_freqs.weight")
    for layer in range(recipe.n_layers):
        b = f"blk.{layer}."
        part = {name.removeprefix(b): value for name, value in w.items() if name.startswith(b)}
        y = attention(recipe, key, part, normed(x, part["attn_norm.weight"]), layer=layer, factors=factors)
        x = x + (normed(y, part["post_attention_norm.weight"]) if gemma else y)
        h = normed(x, part["ffn_norm.weight"])
        gate, up = affine(h, part, "ffn_gate"), affine(h, part, "ffn_up")
        y = affine((gelu(gate) if gemma else gate / (1 + np.exp(-gate))) * up, part, "ffn_down")
        x = x + (normed(y, part["post_ffw_norm.weight"]) if gemma else y)
    h = normed(x, w["output_norm.weight"])
    logits = h @ w.get("output.weight", w["token_embd.weight"]).T + w.get("output.bias", 0.0)
    cap = key.get("final_logit_softcapping", 30.0 if recipe.architecture == "gemma2" else None)
    logits = np.asarray(logits if cap is None else cap * np.tanh(logits / cap))
    logits.flags.writeable = False
    return logits


def attention(
    recipe: Recipe, key: Mapping[str, Any], part: Mapping[str, F64], h: F64, *, layer: int, factors: F64 | None
) -> F64:
    n, d = len(h), recipe.head
    q = affine(h, part, "attn_q").reshape(n, recipe.heads, d)
    k = affine(h, part, "attn_k").reshape(n, recipe.kv_heads, d)
    v = affine(h, part, "attn_v").reshape(n, recipe.kv_heads, d)
    if recipe.architecture in ("qwen3", "gemma3"):
        q, k = normed(q, part["attn_q_norm.weight"]), normed(k, part["attn_k_norm.weight"])
    window = window_of(recipe, key, layer)
    angle, amplitude = angles(recipe, key, n, factors, in_window=window is not None)
    adjacent = recipe.architecture == "llama"
    q, k = rotated(q, angle, adjacent) * amplitude, rotated(k, angle, adjacent) * amplitude
    out = np.zeros((n, recipe.heads, d))
    for head in range(recipe.heads):
        group = head // (recipe.heads // recipe.kv_heads)
        scores = q[:, head] @ k[:, group].T / math.sqrt(d)
        if recipe.architecture == "gemma2":
            cap = key.get("attn_logit_softcapping", 50.0)
            scores = cap * np.tanh(scores / cap)
        for row in range(n):
            first = 0 if window is None else max(0, row - window + 1)
            weight = np.exp(scores[row, first : row + 1] - scores[row, first : row + 1].max())
            out[row, head] = weight / weight.sum() @ v[first : row + 1, group]
    return affine(out.reshape(n, -1), part, "attn_output")


def window_of(recipe: Recipe, key: Mapping[str, Any], layer: int) -> int | None:
    if recipe.architecture == "gemma2":
        return WINDOW if layer % 2 == 0 else None
    if recipe.architecture == "gemma3" and "no window" not in recipe.options:
        pattern = key.get("attention.sliding_window_pattern")
        return WINDOW if (layer % 6 < 5 if pattern is None else pattern[layer]) else None
    return None


def angles(
    recipe: Recipe, key: Mapping[str, Any], n: int, factors: F64 | None, *, in_window: bool
) -> tuple[F64, float]:
    """Angle [positions, pairs] and the factor on what is turned (YaRN's temperature)."""
    d, base = recipe.head, float(key["rope.freq_base"])
    scaling, factor = key.get("rope.scaling.type"), float(key.get("rope.scaling.factor", 1.0))
    if recipe.architecture == "gemma3" and in_window:
        base, scaling = float(key["rope.freq_base_swa"]), None
    pair = np.arange(d // 2)
    frequency = base ** (-2.0 * pair / d)
    if factors is not None:
        frequency = frequency / factors
    amplitude = 1.0
    if scaling == "linear":
        frequency = frequency / factor
    elif scaling == "yarn":
        original = CONTEXT // 4
        # The pair that makes so many turns over the original context (YaRN, arXiv 2309.00071).
        low, high = (d * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1))
        low, high = max(0, math.floor(low)), min(d - 1, math.ceil(high))
        keep = 1 - np.clip((pair - low) / max(0.001, high - low), 0, 1)
        frequency = frequency / factor * (1 - keep) + frequency * keep
        amplitude = 1 + 0.1 * math.log(factor)
    return np.arange(n)[:, None] * frequency, amplitude


def rotated(x: F64, angle: F64, adjacent: bool) -> F64:
    """Turn pairs of [n, heads, d]: (2i, 2i + 1) where adjacent, else (i, i + d / 2)."""
    half = x.shape[-1] // 2
    turn = np.exp(1j * angle)[:, None, :]
    first, second = (x[..., 0::2], x[..., 1::2]) if adjacent else (x[..., :half], x[..., half:])
    turned = (first + 1j * second) * turn
    if adjacent:
        return np.asarray(np.stack((turned.real, turned.imag), axis=-1).reshape(x.shape))
    return np.concatenate((turned.real, turned.imag), axis=-1)


def normed(x: F64, weight: F64) -> F64:
    epsilon = float(np.float32(EPSILON))
    return np.asarray(x / np.sqrt(np.mean(x**2, axis=-1, keepdims=True) + epsilon) * weight)


def affine(x: F64, part: Mapping[str, F64], name: str) -> F64:
    return np.asarray(x @ part[f"{name}.weight"].T + part.get(f"{name}.bias", 0.0))


def gelu(x: F64) -> F64:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def nmse(reference: F64, found: NDArray[Any]) -> float:
    """Squared error against the reference's squares."""
    return float(np.sum((reference - found) ** 2) / np.sum(reference**2))
