# SPDX-License-Identifier: Apache-2.0
"""Small models with random weights that behave: every architecture, with the options that real files have.

The bytes depend on the recipe alone: weights are made of integers from a PCG64 stream, so that the sha256 of a file may
stand in a golden. ``Recipe.weights`` gives the exact numbers of the file to an oracle, without any reader of ours.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.gguf import crafted_gguf as craft

F64 = NDArray[np.float64]
ARCHITECTURES = ("llama", "qwen2", "qwen3", "gemma2", "gemma3")
HEAD = {"llama": 32, "qwen2": 32, "qwen3": 64, "gemma2": 64, "gemma3": 64}
CONTEXT = 256
WINDOW = 12
EPSILON = 1e-5
_STEPS = 1 << 12

# What a real file of each architecture may have; each is tested apart from the plain one. Beside them, "loud" makes
# logits so large that a soft cap bends them.
OPTIONS = {
    "llama": ("factors", "biases", "untied", "linear", "yarn"),
    "qwen2": ("untied", "output bias", "yarn"),
    "qwen3": ("untied", "yarn"),
    "gemma2": ("soft caps",),
    "gemma3": ("linear", "pattern", "logit cap", "no window", "untied"),
}


@dataclass(frozen=True)
class Recipe:
    """A model. ``kind`` is the type of the matrices: craft.GGML_F32, GGML_F16 or GGML_Q8_0."""

    architecture: str
    options: frozenset[str] = frozenset()
    seed: int = 1
    kind: int = craft.GGML_F32
    layers: int = 0  # 0: as few as have every kind of layer
    embd: int = 96
    heads: int = 4
    kv_heads: int = 2
    ff: int = 160

    @property
    def n_layers(self) -> int:
        # Of gemma3 the sixth layer is the first that sees everything.
        return self.layers or (6 if self.architecture == "gemma3" else 3)

    @property
    def head(self) -> int:
        return HEAD[self.architecture]

    @property
    def vocab(self) -> int:
        return len(tokens())

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Tensor name to dims in GGUF order."""
        a, n, wide, narrow = self.architecture, self.embd, self.heads * self.head, self.kv_heads * self.head
        found: dict[str, tuple[int, ...]] = {"token_embd.weight": (n, self.vocab), "output_norm.weight": (n,)}
        if "untied" in self.options:
            found["output.weight"] = (n, self.vocab)
        if "output bias" in self.options:
            found["output.bias"] = (self.vocab,)
        if "factors" in self.options:
            found["rope_freqs.weight"] = (self.head // 2,)
        for layer in range(self.n_layers):
            b = f"blk.{layer}."
            found |= {
                b + "attn_norm.weight": (n,),
                b + "attn_q.weight": (n, wide),
                b + "attn_k.weight": (n, narrow),
                b + "attn_v.weight": (n, narrow),
                b + "attn_output.weight": (wide, n),
                b + "ffn_norm.weight": (n,),
                b + "ffn_gate.weight": (n, self.ff),
                b + "ffn_up.weight": (n, self.ff),
                b + "ffn_down.weight": (self.ff, n),
            }
            if a == "qwen2" or "biases" in self.options:
                found |= {b + "attn_q.bias": (wide,), b + "attn_k.bias": (narrow,), b + "attn_v.bias": (narrow,)}
            if "biases" in self.options:
                found |= {b + "attn_output.bias": (n,), b + "ffn_gate.bias": (self.ff,)}
                found |= {b + "ffn_up.bias": (self.ff,), b + "ffn_down.bias": (n,)}
            if a in ("qwen3", "gemma3"):
                found |= {b + "attn_q_norm.weight": (self.head,), b + "attn_k_norm.weight": (self.head,)}
            if a.startswith("gemma"):
                found |= {b + "post_attention_norm.weight": (n,), b + "post_ffw_norm.weight": (n,)}
        return found

    def keys(self) -> dict[str, tuple[int, Any]]:
        """Key (without the architecture) to type and value."""
        a, o = self.architecture, self.options
        found: dict[str, tuple[int, Any]] = {
            "block_count": (craft.U32, self.n_layers),
            "context_length": (craft.U32, CONTEXT),
            "embedding_length": (craft.U32, self.embd),
            "feed_forward_length": (craft.U32, self.ff),
            "attention.head_count": (craft.U32, self.heads),
            "attention.head_count_kv": (craft.U32, self.kv_heads),
            "attention.key_length": (craft.U32, self.head),
            "attention.value_length": (craft.U32, self.head),
            "attention.layer_norm_rms_epsilon": (craft.F32, EPSILON),
            "rope.dimension_count": (craft.U32, self.head),
            "rope.freq_base": (craft.F32, 1e6 if a in ("gemma3", "qwen3") else 10000.0),
            "vocab_size": (craft.U32, self.vocab),
        }
        if a.startswith("gemma") and "no window" not in o:
            found["attention.sliding_window"] = (craft.U32, WINDOW)
        if a == "gemma3":
            found["rope.freq_base_swa"] = (craft.F32, 5000.0)
        if "linear" in o:
            found |= {"rope.scaling.type": (craft.STRING, "linear"), "rope.scaling.factor": (craft.F32, 8.0)}
        if "yarn" in o:
            found |= {"rope.scaling.type": (craft.STRING, "yarn"), "rope.scaling.factor": (craft.F32, 4.0)}
            found |= {"rope.scaling.original_context_length": (craft.U32, CONTEXT // 4)}
        if "soft caps" in o:
            found |= {"attn_logit_softcapping": (craft.F32, 2.5), "final_logit_softcapping": (craft.F32, 4.0)}
        if "logit cap" in o:
            found["final_logit_softcapping"] = (craft.F32, 3.0)
        if "pattern" in o:
            found["attention.sliding_window_pattern"] = (craft.BOOL, [layer % 3 == 1 for layer in range(self.n_layers)])
        return found

    def file(self) -> bytes:
        """The GGUF file."""
        rows, data = [], b""
        for name, dims in self.shapes().items():
            own = self.kind if len(dims) > 1 else craft.GGML_F32
            rows.append(craft.tensor(name, dims, own, len(data)))
            data += craft.pad(_encoded(*self._drawn(name, dims), own))
        a = self.architecture
        keys = [craft.key_text("general.architecture", a), *_vocabulary_keys()]
        for suffix, (kind, value) in self.keys().items():
            name = f"{a}.{suffix}"
            if isinstance(value, list):
                keys.append(craft.key_array(name, kind, value))
            elif kind == craft.STRING:
                keys.append(craft.key_text(name, value))
            else:
                keys.append(craft.key(name, kind, craft.scalar(kind, value)))
        return craft.gguf(keys, rows, data)

    def weights(self) -> Mapping[str, F64]:
        """Name to values of shape [N, K] (or [n]), exactly those of the file."""
        found: dict[str, F64] = {}
        for name, dims in self.shapes().items():
            steps, scale = self._drawn(name, dims)
            found[name] = steps.astype(np.float64) * np.repeat(scale.astype(np.float64), 32, axis=-1)[..., : dims[0]]
        return found

    def _drawn(self, name: str, dims: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.float16]]:
        """Whole steps [N, K] and the size of a step for each 32 of them; their product is exact in every file type."""
        digest = hashlib.sha256(f"{self.seed} {name}".encode()).digest()
        draw = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))
        shape, blocks = dims[::-1], (*dims[:0:-1], -(-dims[0] // 32))
        if name == "rope_freqs.weight":
            # Factors from 1 to 8, in eighths, as Llama 3 has them.
            return draw.integers(8, 65, shape), np.full(blocks, 0.125, np.float16)
        if name == "output_norm.weight" and "loud" in self.options:
            return draw.integers(96, 161, shape), np.full(blocks, 1 / 8, np.float16)
        if "norm" in name:
            return draw.integers(96, 161, shape), np.full(blocks, 1 / 128, np.float16)
        steps = draw.integers(-127, 128, shape)
        width = 0.3 if name.endswith("bias") else 1.5 / np.sqrt(dims[0])
        if name == "token_embd.weight":
            # So small that the layers decide on the next token, not the last token itself.
            width = 0.3 / np.sqrt(self.embd) if self.architecture.startswith("gemma") else 0.3
        # The standard deviation of a uniform step is 73; scales differ between blocks as they do in real files.
        scale = width / 73 * (0.5 + draw.integers(0, _STEPS, blocks) / _STEPS)
        return steps, scale.astype(np.float16)


def _encoded(steps: NDArray[np.int64], scale: NDArray[np.float16], kind: int) -> bytes:
    if kind == craft.GGML_Q8_0:
        block = np.dtype([("d", "<f2"), ("q", "i1", 32)])
        out = np.zeros(scale.shape, block)
        out["d"] = scale
        out["q"] = steps.reshape(*scale.shape, 32)
        return out.tobytes()
    values = steps.astype(np.float64) * np.repeat(scale.astype(np.float64), 32, axis=-1)[..., : steps.shape[-1]]
    return values.astype("<f4").tobytes()


def tokens() -> list[str]:
    """A vocabulary in which every text is its bytes: GPT-2's letter for each byte, a pair, and control tokens."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters, extra = {byte: chr(byte) for byte in shown}, 256
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(extra)
            extra += 1
    return [letters[byte] for byte in range(256)] + ["he"] + [f"<|control {n}|>" for n in range(31)]


def _vocabulary_keys() -> list[bytes]:
    names = tokens()
    return [
        craft.key_text("tokenizer.ggml.model", "gpt2"),
        craft.key_text("tokenizer.ggml.pre", "gpt-2"),
        craft.key_array("tokenizer.ggml.tokens", craft.STRING, names),
        craft.key_array("tokenizer.ggml.token_type", craft.I32, [1] * 257 + [3] * (len(names) - 257)),
        craft.key_array("tokenizer.ggml.merges", craft.STRING, ["h e"]),
        craft.key_u32("tokenizer.ggml.bos_token_id", 257),
        craft.key_u32("tokenizer.ggml.eos_token_id", 258),
    ]


def sha256(recipe: Recipe) -> str:
    return hashlib.sha256(recipe.file()).hexdigest()


def recipes() -> list[Recipe]:
    """Every architecture, plain and with each of its options alone."""
    return [
        Recipe(architecture, frozenset(options))
        for architecture in ARCHITECTURES
        for options in ((), *((option,) for option in OPTIONS[architecture]))
    ]


def label(recipe: Recipe) -> str:
    return " ".join([recipe.architecture, *sorted(recipe.options)]).replace(" ", "-")
