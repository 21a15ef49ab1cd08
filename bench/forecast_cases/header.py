# SPDX-License-Identifier: Apache-2.0
"""A GGUF file without its data, from the dimensions of a dense model: all that a forecast reads."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

_U32, _F32, _STRING = 4, 6, 8
_Q8_0, _ALIGN = 8, 32


@dataclass(frozen=True)
class Dimensions:
    """A llama-like dense model; ``tied``: the head is the embedding; ``window``: as gemma3, five layers of six."""

    layers: int
    embd: int
    ff: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool
    window: int = 0

    def tensors(self) -> list[tuple[str, tuple[int, int]]]:
        """Names and (K, N)."""
        q, kv = self.heads * self.head_dim, self.kv_heads * self.head_dim
        found = [("token_embd.weight", (self.embd, self.vocab))]
        for layer in range(self.layers):
            found += [
                (f"blk.{layer}.attn_q.weight", (self.embd, q)),
                (f"blk.{layer}.attn_k.weight", (self.embd, kv)),
                (f"blk.{layer}.attn_v.weight", (self.embd, kv)),
                (f"blk.{layer}.attn_output.weight", (q, self.embd)),
                (f"blk.{layer}.ffn_gate.weight", (self.embd, self.ff)),
                (f"blk.{layer}.ffn_up.weight", (self.embd, self.ff)),
                (f"blk.{layer}.ffn_down.weight", (self.ff, self.embd)),
            ]
        return found if self.tied else [*found, ("output.weight", (self.embd, self.vocab))]

    @property
    def matmul_weights(self) -> int:
        """Weights that every token reads: all but an embedding that is not the head too."""
        return sum(k * n for name, (k, n) in self.tensors() if self.tied or name != "token_embd.weight")


def _text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _key(name: str, kind: int, payload: bytes) -> bytes:
    return _text(name) + struct.pack("<I", kind) + payload


def write_header(path: Path, name: str, model: Dimensions, extra_strings: Sequence[bytes] = ()) -> Path:
    """Write magic, keys and tensor table of a Q8_0 file. ``extra_strings`` go into one more array of strings."""
    arch = "gemma3" if model.window else "llama"
    keys = [_key("general.architecture", _STRING, _text(arch)), _key("general.name", _STRING, _text(name))]
    numbers = {
        "block_count": model.layers,
        "context_length": 131072,
        "embedding_length": model.embd,
        "feed_forward_length": model.ff,
        "attention.head_count": model.heads,
        "attention.head_count_kv": model.kv_heads,
        "attention.key_length": model.head_dim,
        "attention.value_length": model.head_dim,
        "vocab_size": model.vocab,
    }
    if model.window:
        numbers["attention.sliding_window"] = model.window
    keys += [_key(f"{arch}.{key}", _U32, struct.pack("<I", value)) for key, value in numbers.items()]
    keys.append(_key(f"{arch}.attention.layer_norm_rms_epsilon", _F32, struct.pack("<f", 1e-6)))
    if extra_strings:
        joined = b"".join(struct.pack("<Q", len(each)) + each for each in extra_strings)
        keys.append(_key("tokenizer.ggml.merges", 9, struct.pack("<IQ", _STRING, len(extra_strings)) + joined))
    rows, at = [], 0
    for tensor, (k, n) in model.tensors():
        rows.append(_text(tensor) + struct.pack("<I2QIQ", 2, k, n, _Q8_0, at))
        at += -(-k * n // 32 * 34 // _ALIGN) * _ALIGN
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(keys))
    path.write_bytes(head + b"".join(keys) + b"".join(rows))
    return path
