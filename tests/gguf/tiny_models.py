# SPDX-License-Identifier: Apache-2.0
"""Small valid models of each architecture; the shapes are written out by hand, as llama.cpp expects them."""

from __future__ import annotations

from tests.gguf import crafted_gguf as craft

LAYERS, EMBD, HEADS, KV_HEADS, FF, VOCAB = 2, 64, 4, 2, 96, 8
HEAD = {
    "llama": 16,
    "qwen2": 16,
    "qwen3": 32,
    "gemma2": 32,
    "gemma3": 32,
    "gemma4": 32,
    "gemma4-assistant": 32,
    "qwen35": 32,
}
PER_LAYER, TARGET = 8, 128

Keys = dict[str, bytes]
Tensors = dict[str, tuple[int, ...]]


def keys_of(architecture: str) -> Keys:
    """Key name to its whole entry, so that a test can replace, add or drop one."""
    a = architecture
    keys: Keys = {
        "general.architecture": craft.key_text("general.architecture", a),
        f"{a}.block_count": craft.key_u32(f"{a}.block_count", LAYERS),
        f"{a}.context_length": craft.key_u32(f"{a}.context_length", 128),
        f"{a}.embedding_length": craft.key_u32(f"{a}.embedding_length", EMBD),
        f"{a}.feed_forward_length": craft.key_u32(f"{a}.feed_forward_length", FF),
        f"{a}.attention.head_count": craft.key_u32(f"{a}.attention.head_count", HEADS),
        f"{a}.attention.head_count_kv": craft.key_u32(f"{a}.attention.head_count_kv", KV_HEADS),
        f"{a}.attention.layer_norm_rms_epsilon": craft.key_f32(f"{a}.attention.layer_norm_rms_epsilon", 1e-6),
        f"{a}.rope.freq_base": craft.key_f32(f"{a}.rope.freq_base", 10000.0),
        "tokenizer.ggml.model": craft.key_text("tokenizer.ggml.model", "gpt2"),
        "tokenizer.ggml.tokens": craft.key_array("tokenizer.ggml.tokens", craft.STRING, list("abcdefgh")),
        "tokenizer.ggml.token_type": craft.key_array("tokenizer.ggml.token_type", craft.I32, [1] * VOCAB),
        "tokenizer.ggml.eos_token_id": craft.key_u32("tokenizer.ggml.eos_token_id", 7),
    }
    if HEAD[a] * HEADS != EMBD:
        for name in (f"{a}.attention.key_length", f"{a}.attention.value_length"):
            keys[name] = craft.key_u32(name, HEAD[a])
    if a.startswith("gemma"):
        name = f"{a}.attention.sliding_window"
        keys[name] = craft.key_u32(name, 16)
    if a.startswith("gemma4"):
        keys |= _gemma4_keys(a)
    if a == "qwen35":
        for name, value in {
            "full_attention_interval": 2,
            "ssm.conv_kernel": 4,
            "ssm.inner_size": 64,
            "ssm.state_size": 16,
            "ssm.time_step_rank": 4,
            "ssm.group_count": 2,
        }.items():
            keys[f"{a}.{name}"] = craft.key_u32(f"{a}.{name}", value)
    return keys


def _gemma4_keys(a: str) -> Keys:
    """A layer in a window with heads of 16 elements, then a global one."""
    pattern = f"{a}.attention.sliding_window_pattern"
    keys = {pattern: craft.key_array(pattern, craft.BOOL, [1, 0])}
    numbers = {"attention.key_length_swa": 16, "attention.value_length_swa": 16, "rope.dimension_count_swa": 16}
    if a == "gemma4":
        numbers["embedding_length_per_layer_input"] = PER_LAYER
    else:
        numbers |= {"nextn_predict_layers": LAYERS, "embedding_length_out": TARGET}
    return keys | {f"{a}.{name}": craft.key_u32(f"{a}.{name}", value) for name, value in numbers.items()}


def tensors_of(architecture: str) -> Tensors:
    """Tensor name to dims in GGUF order."""
    if architecture.startswith("gemma4"):
        return _gemma4_tensors(architecture)
    if architecture == "qwen35":
        return _qwen35_tensors()
    head = HEAD[architecture]
    tensors: Tensors = {"token_embd.weight": (EMBD, VOCAB), "output_norm.weight": (EMBD,)}
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        tensors |= {
            b + "attn_norm.weight": (EMBD,),
            b + "attn_q.weight": (EMBD, 4 * head),
            b + "attn_k.weight": (EMBD, 2 * head),
            b + "attn_v.weight": (EMBD, 2 * head),
            b + "attn_output.weight": (4 * head, EMBD),
            b + "ffn_norm.weight": (EMBD,),
            b + "ffn_gate.weight": (EMBD, FF),
            b + "ffn_up.weight": (EMBD, FF),
            b + "ffn_down.weight": (FF, EMBD),
        }
        if architecture == "qwen2":
            tensors |= {b + "attn_q.bias": (4 * head,), b + "attn_k.bias": (2 * head,), b + "attn_v.bias": (2 * head,)}
        if architecture in ("qwen3", "gemma3"):
            tensors |= {b + "attn_q_norm.weight": (head,), b + "attn_k_norm.weight": (head,)}
        if architecture.startswith("gemma"):
            tensors |= {b + "post_attention_norm.weight": (EMBD,), b + "post_ffw_norm.weight": (EMBD,)}
    return tensors


def _gemma4_tensors(architecture: str) -> Tensors:
    drafter = architecture == "gemma4-assistant"
    tensors: Tensors = {"token_embd.weight": (EMBD, VOCAB), "output_norm.weight": (EMBD,), "rope_freqs.weight": (16,)}
    if drafter:
        tensors |= {
            "nextn.pre_projection.weight": (2 * TARGET, EMBD),
            "nextn.post_projection.weight": (EMBD, TARGET),
        }
    else:
        tensors |= {
            "per_layer_token_embd.weight": (2 * PER_LAYER, VOCAB),
            "per_layer_model_proj.weight": (EMBD, 2 * PER_LAYER),
            "per_layer_proj_norm.weight": (PER_LAYER,),
        }
    for layer, head in enumerate((16, 32)):
        b = f"blk.{layer}."
        tensors |= {
            b + "attn_norm.weight": (EMBD,),
            b + "attn_q.weight": (EMBD, 4 * head),
            b + "attn_q_norm.weight": (head,),
            b + "attn_output.weight": (4 * head, EMBD),
            b + "post_attention_norm.weight": (EMBD,),
            b + "ffn_norm.weight": (EMBD,),
            b + "ffn_gate.weight": (EMBD, FF),
            b + "ffn_up.weight": (EMBD, FF),
            b + "ffn_down.weight": (FF, EMBD),
            b + "post_ffw_norm.weight": (EMBD,),
            b + "layer_output_scale.weight": (1,),
        }
        if not drafter:
            tensors |= {
                b + "attn_k.weight": (EMBD, 2 * head),
                b + "attn_v.weight": (EMBD, 2 * head),
                b + "attn_k_norm.weight": (head,),
                b + "inp_gate.weight": (EMBD, PER_LAYER),
                b + "proj.weight": (PER_LAYER, EMBD),
                b + "post_norm.weight": (EMBD,),
            }
    return tensors


def _qwen35_tensors() -> Tensors:
    """A gated delta net of 4 heads of 16 with 2 heads of keys, then gated attention."""
    tensors: Tensors = {"token_embd.weight": (EMBD, VOCAB), "output_norm.weight": (EMBD,)}
    for layer in range(LAYERS):
        b = f"blk.{layer}."
        tensors |= {
            b + "attn_norm.weight": (EMBD,),
            b + "post_attention_norm.weight": (EMBD,),
            b + "ffn_gate.weight": (EMBD, FF),
            b + "ffn_up.weight": (EMBD, FF),
            b + "ffn_down.weight": (FF, EMBD),
        }
    return tensors | {
        "blk.0.attn_qkv.weight": (EMBD, 128),
        "blk.0.attn_gate.weight": (EMBD, 64),
        "blk.0.ssm_conv1d.weight": (4, 128),
        "blk.0.ssm_beta.weight": (EMBD, 4),
        "blk.0.ssm_alpha.weight": (EMBD, 4),
        "blk.0.ssm_dt.bias": (4,),
        "blk.0.ssm_a": (4,),
        "blk.0.ssm_norm.weight": (16,),
        "blk.0.ssm_out.weight": (64, EMBD),
        "blk.1.attn_q.weight": (EMBD, 2 * 4 * 32),
        "blk.1.attn_k.weight": (EMBD, 2 * 32),
        "blk.1.attn_v.weight": (EMBD, 2 * 32),
        "blk.1.attn_output.weight": (4 * 32, EMBD),
        "blk.1.attn_q_norm.weight": (32,),
        "blk.1.attn_k_norm.weight": (32,),
    }


def assemble(keys: Keys, tensors: Tensors, kind: int = craft.GGML_F32) -> bytes:
    """The file; F32 or Q8_0 for the matrices, F32 for the vectors, data one after the other, all bytes 0x11."""
    rows, data = [], b""
    for name, dims in tensors.items():
        # Rows of other lengths have no Q8_0 form; real files keep these in F32 or F16.
        own = kind if len(dims) > 1 and dims[0] % 32 == 0 else craft.GGML_F32
        elements = 1
        for dim in dims:
            elements *= dim
        size = elements * 4 if own == craft.GGML_F32 else elements // 32 * 34
        rows.append(craft.tensor(name, dims, own, len(data)))
        data += craft.pad(b"\x11" * size)
    return craft.gguf(list(keys.values()), rows, data)


def model(architecture: str, kind: int = craft.GGML_F32) -> bytes:
    return assemble(keys_of(architecture), tensors_of(architecture), kind)
