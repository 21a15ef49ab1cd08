# SPDX-License-Identifier: Apache-2.0
"""Small models with random weights of gemma4, gemma4-assistant and qwen35; the bytes depend on the options alone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import tokens

F64 = NDArray[np.float64]
VOCAB, CONTEXT, EPSILON = 288, 256, 1e-6
Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Written:
    """``keys`` suffix to (type, value), ``shapes`` name to dims in GGUF order."""

    architecture: str
    keys: Mapping[str, tuple[int, Any]]
    shapes: Mapping[str, tuple[int, ...]]
    seed: int = 1
    special: Mapping[str, F64] = field(default_factory=dict)

    def key(self, suffix: str) -> Any:
        return self.keys[suffix][1]

    def weights(self) -> dict[str, F64]:
        """Name to values of shape [N, K] or [n], exactly those of the file (float32)."""
        return {name: self._values(name, dims).astype(np.float64) for name, dims in self.shapes.items()}

    def file(self) -> bytes:
        rows, data = [], b""
        for name, dims in self.shapes.items():
            rows.append(craft.tensor(name, dims, craft.GGML_F32, len(data)))
            data += craft.pad(self._values(name, dims).tobytes())
        a = self.architecture
        keys = [craft.key_text("general.architecture", a), *_vocabulary()]
        for suffix, (kind, value) in self.keys.items():
            name = f"{a}.{suffix}"
            if isinstance(value, list):
                keys.append(craft.key_array(name, kind, value))
            else:
                keys.append(craft.key(name, kind, craft.scalar(kind, value)))
        return craft.gguf(keys, rows, data)

    def _values(self, name: str, dims: tuple[int, ...]) -> NDArray[np.float32]:
        shape = dims[::-1]
        if name in self.special:
            return self.special[name].astype("<f4").reshape(shape)
        digest = hashlib.sha256(f"{self.seed} {name}".encode()).digest()
        draw = np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))
        steps = draw.integers(-127, 128, shape)
        if "norm" in name or name.endswith("layer_output_scale.weight"):
            return (1 + steps / 512).astype("<f4")
        width = {"ssm_dt.bias": 1.0, "ssm_conv1d.weight": 0.5}.get(name.split(".", 2)[-1], 1.5 / np.sqrt(dims[0]))
        if name.endswith("token_embd.weight"):
            width = 0.2
        # The standard deviation of a uniform step is 73.
        return np.asarray(steps * (width / 73)).astype("<f4")


def _vocabulary() -> list[bytes]:
    return [
        craft.key_text("tokenizer.ggml.model", "gpt2"),
        craft.key_text("tokenizer.ggml.pre", "gpt-2"),
        craft.key_array("tokenizer.ggml.tokens", craft.STRING, tokens()),
        craft.key_array("tokenizer.ggml.token_type", craft.I32, [1] * 257 + [3] * 31),
        craft.key_array("tokenizer.ggml.merges", craft.STRING, ["h e"]),
        craft.key_u32("tokenizer.ggml.bos_token_id", 257),
        craft.key_u32("tokenizer.ggml.eos_token_id", 258),
    ]


GEMMA4_OPTIONS = ("no per layer", "shared", "k is v", "no cap", "no scales", "wide", "fused", "untied")
EMBD, HEADS, FF, PER_LAYER, WINDOW, TARGET_KV = 96, 4, 128, 32, 12, 2
DIMS = {True: 32, False: 64}  # in a window, global


def gemma4(*options: str, seed: int = 1) -> Written:
    """Four layers, in a window and global by turns; with "shared" the last two read the first two."""
    in_window = [True, False, True, False]
    own = [True, True, "shared" not in options, "shared" not in options]
    ff = [FF if has or "wide" not in options else 2 * FF for has in own]
    keys: dict[str, tuple[int, Any]] = {
        "block_count": (craft.U32, 4),
        "context_length": (craft.U32, CONTEXT),
        "embedding_length": (craft.U32, EMBD),
        "embedding_length_per_layer_input": (craft.U32, 0 if "no per layer" in options else PER_LAYER),
        "feed_forward_length": (craft.U32, ff),
        "attention.head_count": (craft.U32, HEADS),
        "attention.head_count_kv": (craft.U32, [TARGET_KV if w else 1 for w in in_window]),
        "attention.key_length": (craft.U32, DIMS[False]),
        "attention.value_length": (craft.U32, DIMS[False]),
        "attention.key_length_swa": (craft.U32, DIMS[True]),
        "attention.value_length_swa": (craft.U32, DIMS[True]),
        "attention.sliding_window": (craft.U32, WINDOW),
        "attention.sliding_window_pattern": (craft.BOOL, in_window),
        "attention.shared_kv_layers": (craft.U32, own.count(False)),
        "attention.layer_norm_rms_epsilon": (craft.F32, EPSILON),
        "rope.freq_base": (craft.F32, 1e6),
        "rope.freq_base_swa": (craft.F32, 1e4),
        "rope.dimension_count": (craft.U32, DIMS[False]),
        "rope.dimension_count_swa": (craft.U32, DIMS[True]),
        "vocab_size": (craft.U32, VOCAB),
    }
    if "no cap" not in options:
        keys["final_logit_softcapping"] = (craft.F32, 5.0)
    shapes: Shapes = {"token_embd.weight": (EMBD, VOCAB), "output_norm.weight": (EMBD,), "rope_freqs.weight": (32,)}
    if "untied" in options:
        shapes["output.weight"] = (EMBD, VOCAB)
    if "no per layer" not in options:
        shapes |= {
            "per_layer_token_embd.weight": (4 * PER_LAYER, VOCAB),
            "per_layer_model_proj.weight": (EMBD, 4 * PER_LAYER),
            "per_layer_proj_norm.weight": (PER_LAYER,),
        }
    for layer, (w, has) in enumerate(zip(in_window, own, strict=True)):
        shapes |= _gemma4_layer(f"blk.{layer}.", options, w, has, ff[layer])
    return Written("gemma4", keys, shapes, seed, {"rope_freqs.weight": _factors(DIMS[False])})


def _gemma4_layer(b: str, options: tuple[str, ...], in_window: bool, own: bool, ff: int) -> Shapes:
    dim, kv = DIMS[in_window], TARGET_KV if in_window else 1
    names = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
    shapes: Shapes = {f"{b}{name}.weight": (EMBD,) for name in names}
    shapes[b + "attn_q_norm.weight"] = (dim,)
    if own:
        shapes[b + "attn_k_norm.weight"] = (dim,)
    if "fused" in options and own:
        shapes[b + "attn_qkv.weight"] = (EMBD, (HEADS + 2 * kv) * dim)
    else:
        shapes[b + "attn_q.weight"] = (EMBD, HEADS * dim)
        if own:
            shapes[b + "attn_k.weight"] = (EMBD, kv * dim)
            if "k is v" not in options or in_window:
                shapes[b + "attn_v.weight"] = (EMBD, kv * dim)
    shapes |= {
        b + "attn_output.weight": (HEADS * dim, EMBD),
        b + "ffn_gate.weight": (EMBD, ff),
        b + "ffn_up.weight": (EMBD, ff),
        b + "ffn_down.weight": (ff, EMBD),
    }
    if "no scales" not in options:
        shapes[b + "layer_output_scale.weight"] = (1,)
    if "no per layer" not in options:
        shapes |= {
            b + "inp_gate.weight": (EMBD, PER_LAYER),
            b + "proj.weight": (PER_LAYER, EMBD),
            b + "post_norm.weight": (EMBD,),
        }
    return shapes


def _factors(dim: int) -> F64:
    """A quarter of the head turns; 1e30 leaves the rest as it is."""
    return np.where(np.arange(dim // 2) < dim // 8, 1.0, 1e30)


DRAFT_EMBD = 64


def gemma4_assistant(seed: int = 2) -> Written:
    """Three layers on the caches of ``gemma4``."""
    in_window = [True, True, False]
    keys: dict[str, tuple[int, Any]] = dict(gemma4().keys)
    for name in ("embedding_length_per_layer_input", "final_logit_softcapping"):
        del keys[name]
    keys |= {
        "block_count": (craft.U32, 3),
        "nextn_predict_layers": (craft.U32, 3),
        "embedding_length": (craft.U32, DRAFT_EMBD),
        "embedding_length_out": (craft.U32, EMBD),
        "feed_forward_length": (craft.U32, FF),
        "attention.head_count_kv": (craft.U32, [TARGET_KV if w else 1 for w in in_window]),
        "attention.sliding_window_pattern": (craft.BOOL, in_window),
        "attention.shared_kv_layers": (craft.U32, 3),
    }
    n = DRAFT_EMBD
    shapes: Shapes = {
        "token_embd.weight": (n, VOCAB),
        "output_norm.weight": (n,),
        "rope_freqs.weight": (32,),
        "nextn.pre_projection.weight": (2 * EMBD, n),
        "nextn.post_projection.weight": (n, EMBD),
    }
    for layer, w in enumerate(in_window):
        b, dim = f"blk.{layer}.", DIMS[w]
        names = ("attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm")
        shapes |= {f"{b}{name}.weight": (n,) for name in names}
        shapes |= {
            b + "attn_q.weight": (n, HEADS * dim),
            b + "attn_q_norm.weight": (dim,),
            b + "attn_output.weight": (HEADS * dim, n),
            b + "ffn_gate.weight": (n, FF),
            b + "ffn_up.weight": (n, FF),
            b + "ffn_down.weight": (FF, n),
            b + "layer_output_scale.weight": (1,),
        }
    return Written("gemma4-assistant", keys, shapes, seed, {"rope_freqs.weight": _factors(DIMS[False])})


QWEN35_OPTIONS = ("nextn", "untied", "own head")
STATE, K_HEADS, V_HEADS, HEAD, KV_HEADS, N_ROT, KERNEL = 16, 2, 4, 32, 2, 8, 4
CHANNELS, INNER = (2 * K_HEADS + V_HEADS) * STATE, V_HEADS * STATE


def qwen35(*options: str, seed: int = 3) -> Written:
    """Gated delta nets in layers 0, 1, 2 and 4, gated attention in layer 3."""
    nextn = "nextn" in options or "own head" in options
    keys: dict[str, tuple[int, Any]] = {
        "block_count": (craft.U32, 5 + nextn),
        "context_length": (craft.U32, CONTEXT),
        "embedding_length": (craft.U32, EMBD),
        "feed_forward_length": (craft.U32, FF),
        "attention.head_count": (craft.U32, HEADS),
        "attention.head_count_kv": (craft.U32, KV_HEADS),
        "attention.key_length": (craft.U32, HEAD),
        "attention.value_length": (craft.U32, HEAD),
        "attention.layer_norm_rms_epsilon": (craft.F32, EPSILON),
        "rope.freq_base": (craft.F32, 1e6),
        "rope.dimension_count": (craft.U32, N_ROT),
        "rope.dimension_sections": (craft.I32, [2, 1, 1, 0]),
        "ssm.conv_kernel": (craft.U32, KERNEL),
        "ssm.inner_size": (craft.U32, INNER),
        "ssm.state_size": (craft.U32, STATE),
        "ssm.time_step_rank": (craft.U32, V_HEADS),
        "ssm.group_count": (craft.U32, K_HEADS),
        "full_attention_interval": (craft.U32, 4),
        "vocab_size": (craft.U32, VOCAB),
    }
    if nextn:
        keys["nextn_predict_layers"] = (craft.U32, 1)
    shapes: Shapes = {"token_embd.weight": (EMBD, VOCAB), "output_norm.weight": (EMBD,)}
    if "untied" in options:
        shapes["output.weight"] = (EMBD, VOCAB)
    special: dict[str, F64] = {}
    for layer in range(5 + nextn):
        b = f"blk.{layer}."
        shapes |= {
            b + "attn_norm.weight": (EMBD,),
            b + "post_attention_norm.weight": (EMBD,),
            b + "ffn_gate.weight": (EMBD, FF),
            b + "ffn_up.weight": (EMBD, FF),
            b + "ffn_down.weight": (FF, EMBD),
        }
        if layer in (3, 5):
            shapes |= {
                b + "attn_q.weight": (EMBD, 2 * HEADS * HEAD),
                b + "attn_k.weight": (EMBD, KV_HEADS * HEAD),
                b + "attn_v.weight": (EMBD, KV_HEADS * HEAD),
                b + "attn_output.weight": (HEADS * HEAD, EMBD),
                b + "attn_q_norm.weight": (HEAD,),
                b + "attn_k_norm.weight": (HEAD,),
            }
        else:
            special[b + "ssm_a"] = -np.array([0.05, 0.3, 1.0, 2.0])
            shapes |= {
                b + "attn_qkv.weight": (EMBD, CHANNELS),
                b + "attn_gate.weight": (EMBD, INNER),
                b + "ssm_conv1d.weight": (KERNEL, CHANNELS),
                b + "ssm_beta.weight": (EMBD, V_HEADS),
                b + "ssm_alpha.weight": (EMBD, V_HEADS),
                b + "ssm_dt.bias": (V_HEADS,),
                b + "ssm_a": (V_HEADS,),
                b + "ssm_norm.weight": (STATE,),
                b + "ssm_out.weight": (INNER, EMBD),
            }
    if nextn:
        b = "blk.5.nextn."
        shapes |= {b + "eh_proj.weight": (2 * EMBD, EMBD), b + "enorm.weight": (EMBD,), b + "hnorm.weight": (EMBD,)}
    if "own head" in options:
        shapes |= {"blk.5.nextn.shared_head_norm.weight": (EMBD,)}
        shapes |= {f"blk.5.nextn.{name}.weight": (EMBD, VOCAB) for name in ("embed_tokens", "shared_head_head")}
    return Written("qwen35", keys, shapes, seed, special)
