# SPDX-License-Identifier: Apache-2.0
"""gemma4, gemma4-assistant and qwen35 in float64: one sequence, no cache, nothing of the engine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.hybrids.random_files import (
    DIMS,
    EPSILON,
    F64,
    HEAD,
    HEADS,
    INNER,
    K_HEADS,
    KERNEL,
    N_ROT,
    PER_LAYER,
    STATE,
    V_HEADS,
    WINDOW,
    Written,
)


@dataclass(frozen=True)
class Passed:
    """``logits`` [n, vocab], ``hidden`` [n, embd] behind the final norm, ``held`` (k, v) by layer that has its own."""

    logits: F64
    hidden: F64
    held: dict[int, tuple[F64, F64]]


def normed(x: F64, weight: F64 | float = 1.0) -> F64:
    return np.asarray(x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * weight)


def gelu(x: F64) -> F64:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def sigmoid(x: F64) -> F64:
    return np.asarray(1 / (1 + np.exp(-x)))


def turned(x: F64, base: float, positions: NDArray[Any], factors: F64 | float = 1.0) -> F64:
    """Dims i and i + n/2 of x [n, heads, n_rot] turn together."""
    half = x.shape[-1] // 2
    angle = positions[:, None] * (base ** (-np.arange(half) / half) / factors)
    c, s = np.cos(angle)[:, None], np.sin(angle)[:, None]
    a, b = x[..., :half], x[..., half:]
    return np.concatenate((a * c - b * s, b * c + a * s), -1)


def attended(q: F64, k: F64, v: F64, sees: NDArray[np.bool_], scale: float) -> F64:
    """[n, heads * dim]; ``sees`` [n, m] true where a row sees a column."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("nhd,mhd->hnm", q, k) * scale
    scores = np.where(sees, scores, -np.inf)
    weight = np.exp(scores - scores.max(-1, keepdims=True))
    weight /= weight.sum(-1, keepdims=True)
    return np.asarray(np.einsum("hnm,mhd->nhd", weight, v).reshape(len(q), -1))


def parts(w: Mapping[str, F64], layer: int) -> dict[str, F64]:
    b = f"blk.{layer}."
    return {name.removeprefix(b).removesuffix(".weight"): value for name, value in w.items() if name.startswith(b)}


def gemma4_forward(model: Written, tokens: Sequence[int]) -> Passed:
    w, n = model.weights(), len(tokens)
    embd = model.key("embedding_length")
    flags, shared = model.key("attention.sliding_window_pattern"), model.key("attention.shared_kv_layers")
    positions = np.arange(n)
    back = positions[:, None] - positions
    x = w["token_embd.weight"][list(tokens)] * math.sqrt(embd)
    extra = None
    if "per_layer_token_embd.weight" in w:
        own = w["per_layer_token_embd.weight"][list(tokens)].reshape(n, -1, PER_LAYER) * math.sqrt(PER_LAYER)
        projected = (x @ w["per_layer_model_proj.weight"].T / math.sqrt(embd)).reshape(own.shape)
        extra = (normed(projected, w["per_layer_proj_norm.weight"]) + own) / math.sqrt(2)
    held: dict[int, tuple[F64, F64]] = {}
    first = len(flags) - shared
    for layer, in_window in enumerate(flags):
        p, dim = parts(w, layer), DIMS[in_window]
        base, factors = (1e4, 1.0) if in_window else (1e6, w["rope_freqs.weight"])
        h = normed(x, p["attn_norm"])
        raw = h @ (p["attn_qkv"] if "attn_qkv" in p else p["attn_q"]).T
        q = turned(normed(raw[:, : HEADS * dim].reshape(n, -1, dim), p["attn_q_norm"]), base, positions, factors)
        source = layer
        if layer < first:
            if "attn_qkv" in p:
                k, v = np.split(raw[:, HEADS * dim :], 2, axis=1)
            else:
                k = h @ p["attn_k"].T
                v = h @ p["attn_v"].T if "attn_v" in p else k
            k, v = k.reshape(n, -1, dim), v.reshape(n, -1, dim)
            held[layer] = turned(normed(k, p["attn_k_norm"]), base, positions, factors), normed(v)
        else:
            source = first - (2 if in_window else 1)
        sees = (back >= 0) & ((back < WINDOW) | (not in_window))
        a = attended(q, *held[source], sees, 1.0)
        x = x + normed(a @ p["attn_output"].T, p["post_attention_norm"])
        h = normed(x, p["ffn_norm"])
        y = (gelu(h @ p["ffn_gate"].T) * (h @ p["ffn_up"].T)) @ p["ffn_down"].T
        x = x + normed(y, p["post_ffw_norm"])
        if extra is not None:
            y = (gelu(x @ p["inp_gate"].T) * extra[:, layer]) @ p["proj"].T
            x = x + normed(y, p["post_norm"])
        x = x * p.get("layer_output_scale", 1.0)
    hidden = normed(x, w["output_norm.weight"])
    logits = hidden @ w.get("output.weight", w["token_embd.weight"]).T
    cap = model.key("final_logit_softcapping") if "final_logit_softcapping" in model.keys else 30.0
    return Passed(cap * np.tanh(logits / cap), hidden, held)


def assistant_step(
    model: Written, target: Written, *, token: int, hidden: F64, position: int, held: Mapping[int, tuple[F64, F64]]
) -> tuple[F64, F64]:
    """One step at ``position`` over the target's positions before it: logits [vocab] and the next hidden state."""
    w, t = model.weights(), target.weights()
    e = t["token_embd.weight"][token] * math.sqrt(target.key("embedding_length"))
    x = np.concatenate((e, hidden))[None] @ w["nextn.pre_projection.weight"].T
    flags = target.key("attention.sliding_window_pattern")
    first = len(flags) - target.key("attention.shared_kv_layers")
    at = np.array([position])
    for layer, in_window in enumerate(model.key("attention.sliding_window_pattern")):
        p, dim = parts(w, layer), DIMS[in_window]
        base, factors = (1e4, 1.0) if in_window else (1e6, w["rope_freqs.weight"])
        source = min(len(flags) - (2 if in_window else 1), first - (2 if in_window else 1))
        k, v = (array[:position] for array in held[source])
        h = normed(x, p["attn_norm"])
        q = turned(normed((h @ p["attn_q"].T).reshape(1, -1, dim), p["attn_q_norm"]), base, at, factors)
        back = position - np.arange(position)
        a = attended(q, k, v, np.asarray((back < WINDOW) | (not in_window))[None], 1.0)
        x = x + normed(a @ p["attn_output"].T, p["post_attention_norm"])
        h = normed(x, p["ffn_norm"])
        y = (gelu(h @ p["ffn_gate"].T) * (h @ p["ffn_up"].T)) @ p["ffn_down"].T
        x = (x + normed(y, p["post_ffw_norm"])) * p["layer_output_scale"]
    n = normed(x, w["output_norm.weight"])[0]
    return n @ w["token_embd.weight"].T, n @ w["nextn.post_projection.weight"].T


def qwen35_forward(model: Written, tokens: Sequence[int]) -> Passed:
    w = model.weights()
    x = w["token_embd.weight"][list(tokens)]
    for layer in range(5):
        p = parts(w, layer)
        h = normed(x, p["attn_norm"])
        y: F64 = gated_attention(p, h, np.arange(len(x))) if layer == 3 else delta_net(p, h)
        x = x + y
        x = x + feed_forward(p, x)
    hidden = normed(x, w["output_norm.weight"])
    return Passed(hidden @ w.get("output.weight", w["token_embd.weight"]).T, hidden, {})


def feed_forward(p: Mapping[str, F64], x: F64) -> F64:
    h = normed(x, p["post_attention_norm"])
    gate = h @ p["ffn_gate"].T
    return np.asarray((gate * sigmoid(gate) * (h @ p["ffn_up"].T)) @ p["ffn_down"].T)


def gated_attention(p: Mapping[str, F64], h: F64, positions: NDArray[Any]) -> F64:
    n = len(h)
    both = (h @ p["attn_q"].T).reshape(n, HEADS, 2 * HEAD)
    q, gate = normed(both[..., :HEAD], p["attn_q_norm"]), both[..., HEAD:].reshape(n, -1)
    k = normed((h @ p["attn_k"].T).reshape(n, -1, HEAD), p["attn_k_norm"])
    v = (h @ p["attn_v"].T).reshape(n, -1, HEAD)
    q, k = (np.concatenate((turned(a[..., :N_ROT], 1e6, positions), a[..., N_ROT:]), -1) for a in (q, k))
    sees = positions[:, None] >= positions
    return np.asarray((attended(q, k, v, sees, 1 / math.sqrt(HEAD)) * sigmoid(gate)) @ p["attn_output"].T)


def delta_net(p: Mapping[str, F64], h: F64) -> F64:
    n = len(h)
    mixed = np.concatenate((np.zeros((KERNEL - 1, p["attn_qkv"].shape[0])), h @ p["attn_qkv"].T))
    c = np.stack([(mixed[t : t + KERNEL] * p["ssm_conv1d"].T).sum(0) for t in range(n)])
    c = c * sigmoid(c)
    q, k, v = np.split(c, [K_HEADS * STATE, 2 * K_HEADS * STATE], axis=1)
    q, k, v = (part.reshape(n, -1, STATE) for part in (q, k, v))
    q, k = (part / np.sqrt((part * part).sum(-1, keepdims=True) + EPSILON) for part in (q, k))
    beta = sigmoid(h @ p["ssm_beta"].T)
    decay = np.exp(np.log1p(np.exp(h @ p["ssm_alpha"].T + p["ssm_dt.bias"])) * p["ssm_a"])
    z = (h @ p["attn_gate"].T).reshape(n, V_HEADS, STATE)
    state = np.zeros((V_HEADS, STATE, STATE))
    out = np.zeros((n, V_HEADS, STATE))
    for t in range(n):
        for i in range(V_HEADS):
            key, query = k[t, i % K_HEADS], q[t, i % K_HEADS]
            s = state[i] * decay[t, i]
            state[i] = s + np.outer(key, (v[t, i] - key @ s) * beta[t, i])
            out[t, i] = query @ state[i] / math.sqrt(STATE)
    y = normed(out, p["ssm_norm"]) * (z * sigmoid(z))
    return np.asarray(y.reshape(n, INNER) @ p["ssm_out"].T)


def nextn_forward(model: Written, tokens: Sequence[int], hidden: F64) -> Passed:
    """The block over a whole text: token i with the hidden state before it [n, embd]."""
    w = model.weights()
    p = parts(w, 5)
    table = p.get("nextn.embed_tokens", w["token_embd.weight"])
    e = normed(table[list(tokens)], p["nextn.enorm"])
    x = np.concatenate((e, normed(hidden, p["nextn.hnorm"])), 1) @ p["nextn.eh_proj"].T
    x = x + gated_attention(p, normed(x, p["attn_norm"]), np.arange(len(x)))
    x = x + feed_forward(p, x)
    n = normed(x, p.get("nextn.shared_head_norm", w["output_norm.weight"]))
    head = p.get("nextn.shared_head_head", w.get("output.weight", w["token_embd.weight"]))
    return Passed(n @ head.T, n, {})
