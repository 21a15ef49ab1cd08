# SPDX-License-Identifier: Apache-2.0
"""A small transformer whose weights are put in by hand: sizes, tokens, and matrices that are zero until written.

The residual stream is used as slots: one for each token (which the embedding sets to 1), one for each answer (which the
head reads), and one that is 1 for every token. All of them stand in the numbers 0, 1 and a few more, so that int8, fp16
and blocks of 32 hold them exactly or nearly; norms keep their ratios.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from conformance.traps.gguf_writer import Value, encode_gguf

F32 = NDArray[np.float32]

NOTHING, BOS, EOS, UNKNOWN, NEWLINE, FIRST = 0, 1, 2, 3, 4, 5
"""Token ids that every trap has; its own begin at ``FIRST``. Token 0 is what greedy choice gives for equal logits."""
NOTHING_TEXT = "[nothing computed]"
_SPECIAL = (NOTHING_TEXT, "<s>", "</s>", "<unk>", "<0x0A>")
_KIND = (1, 3, 3, 2, 6)
"""Types of those tokens: normal, control, control, unknown, byte (llama.cpp b11434 llama-vocab.cpp)."""

CONTEXT = 256
EPS = 1e-6
TOKEN_HEIGHT = 1.0
VOTE = 4.0
"""What the right answer's slot holds, where a token's own holds ``TOKEN_HEIGHT``."""
GATE = 8.0
"""What a gate that detects its token gives: silu(8) and gelu(8) are 8 but for 3 parts in 10,000."""


@dataclass
class Blueprint:
    """``words``: texts of the tokens from ``FIRST`` on. ``kind``: type of the layers' matrices; ``head_kind``: of
    token_embd and output.weight (not ``tied``). ``keys``: further ones, without ``<architecture>.`` before them.
    """

    words: tuple[str, ...]
    n_vocab: int = 64
    n_embd: int = 192
    n_ff: int = 64
    n_layer: int = 1
    head_dim: int = 64
    architecture: str = "llama"
    kind: str = "Q8_0"
    head_kind: str = "Q8_0"
    rope_base: float = 10000.0
    tied: bool = False
    keys: dict[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.embedding = np.zeros((self.n_vocab, self.n_embd), np.float32)
        self.head = np.zeros((self.n_vocab, self.n_embd), np.float32)
        self.layers = [_Layer(self) for _ in range(self.n_layer)]

    @property
    def constant(self) -> int:
        """The slot that every token sets."""
        return 2 * self.n_vocab

    def answer(self, token: int) -> int:
        """The slot in which votes for a token are collected."""
        return self.n_vocab + token

    def embed_plainly(self) -> None:
        """Each token sets its own slot and the constant one."""
        np.fill_diagonal(self.embedding, TOKEN_HEIGHT)
        self.embedding[:, self.constant] = TOKEN_HEIGHT

    def read_answers(self, gain: float) -> None:
        """The head: ``gain`` nats for each unit of a normed answer slot; token 0 has half a unit at all times."""
        for token in range(self.n_vocab):
            self.head[token, self.answer(token)] = gain
        self.head[NOTHING, self.constant] = gain / 2

    def height(self, active: float = 2.0) -> float:
        """What a slot holding 1 is after the norm, in a row whose squares sum up to ``active``."""
        return math.sqrt(self.n_embd / active)

    def texts(self) -> tuple[str, ...]:
        """The text of every token."""
        texts = _SPECIAL + self.words
        return texts + tuple(f"[unused {number}]" for number in range(len(texts), self.n_vocab))

    def encode(self) -> bytes:
        """The file."""
        tensors: dict[str, tuple[str, F32]] = {"token_embd.weight": (self.head_kind, self.embedding)}
        if not self.tied:
            tensors["output.weight"] = (self.head_kind, self.head)
        tensors["output_norm.weight"] = ("F32", np.ones(self.n_embd, np.float32))
        for number, layer in enumerate(self.layers):
            for name, values in layer.tensors().items():
                tensors[f"blk.{number}.{name}.weight"] = (self.kind if values.ndim == 2 else "F32", values)
        return encode_gguf(self._keys(), tensors)

    def _keys(self) -> dict[str, Value]:
        sizes: dict[str, Value] = {
            "block_count": self.n_layer,
            "context_length": CONTEXT,
            "embedding_length": self.n_embd,
            "feed_forward_length": self.n_ff,
            "attention.head_count": 1,
            "attention.head_count_kv": 1,
            "attention.key_length": self.head_dim,
            "attention.value_length": self.head_dim,
            "attention.layer_norm_rms_epsilon": EPS,
            "rope.dimension_count": self.head_dim,
            "rope.freq_base": self.rope_base,
            **self.keys,
        }
        texts = self.texts()
        return {
            "general.architecture": self.architecture,
            "general.name": "trap",
            **{f"{self.architecture}.{name}": value for name, value in sizes.items()},
            "tokenizer.ggml.model": "llama",
            "tokenizer.ggml.tokens": texts,
            "tokenizer.ggml.scores": [0.0] * len(texts),
            "tokenizer.ggml.token_type": [*_KIND, *(1 for _ in texts[len(_KIND) :])],
            "tokenizer.ggml.bos_token_id": BOS,
            "tokenizer.ggml.eos_token_id": EOS,
            "tokenizer.ggml.unknown_token_id": UNKNOWN,
            "tokenizer.ggml.add_bos_token": False,
            "tokenizer.ggml.add_eos_token": False,
            "tokenizer.ggml.add_space_prefix": False,
        }


class _Layer:
    """Matrices [N, K] of one layer, all zero, and its norms, all one."""

    def __init__(self, of: Blueprint) -> None:
        self.q = np.zeros((of.head_dim, of.n_embd), np.float32)
        self.k, self.v = self.q.copy(), self.q.copy()
        self.out = np.zeros((of.n_embd, of.head_dim), np.float32)
        self.gate = np.zeros((of.n_ff, of.n_embd), np.float32)
        self.up = self.gate.copy()
        self.down = np.zeros((of.n_embd, of.n_ff), np.float32)
        self.norms = {"attn_norm": np.ones(of.n_embd, np.float32), "ffn_norm": np.ones(of.n_embd, np.float32)}
        if of.architecture == "gemma3":
            for name in ("attn_q_norm", "attn_k_norm"):
                self.norms[name] = np.ones(of.head_dim, np.float32)
            for name in ("post_attention_norm", "post_ffw_norm"):
                self.norms[name] = np.ones(of.n_embd, np.float32)

    def detect(self, unit: int, slot: int, constant: int, height: float, activation: float = 1.0) -> None:
        """Hidden unit ``unit`` becomes ``activation`` where ``slot`` is set, 0 elsewhere; slots are ``height`` high."""
        self.gate[unit, slot] = GATE / height
        self.up[unit, constant] = activation / GATE / height

    def tensors(self) -> dict[str, F32]:
        return {
            "attn_q": self.q,
            "attn_k": self.k,
            "attn_v": self.v,
            "attn_output": self.out,
            "ffn_gate": self.gate,
            "ffn_up": self.up,
            "ffn_down": self.down,
            **self.norms,
        }
