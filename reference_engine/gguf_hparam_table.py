# SPDX-License-Identifier: Apache-2.0
"""Hyper-parameters of each architecture the engine computes: keys, types, bounds, defaults, relations. Data, no logic.

Facts: llama.cpp b11434 (llama-model.cpp load_hparams, src/models/*.cpp), checked against its logits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Union

Default = Union[int, float, str, None]

SAME = "="
"""A default that begins with this sign names the key it is copied from."""


@dataclass(frozen=True)
class Key:
    """One key, without the ``<architecture>.`` before it.

    ``kind``: integer, number, text, or flags (an array of booleans, one for each layer, or one integer period). ``low``
    and ``high`` are inclusive; ``above`` is exclusive. ``per_layer``: one value, or an array of one for each layer.
    ``choices`` for a text. ``unsupported`` names what a model has whose value is out of bounds, where such models are
    sound but beyond the engine.
    """

    suffix: str
    kind: str
    required: bool = False
    low: float | None = None
    high: float | None = None
    above: float | None = None
    default: Default = None
    per_layer: bool = False
    choices: tuple[str, ...] = ()
    unsupported: str = ""


@dataclass(frozen=True)
class Architecture:
    """``layer_tensors`` and ``model_tensors`` map a name to (dimension names, required). See gguf_shapes.

    ``required`` is yes, no, or the name of a condition on the layer.
    """

    name: str
    keys: tuple[Key, ...]
    layer_tensors: Mapping[str, tuple[tuple[str, ...], bool | str]]
    model_tensors: Mapping[str, tuple[tuple[str, ...], bool | str]]
    rope_is_whole_head: bool = False


_MAX_LAYERS = 1024
_MAX_WIDTH = 1 << 20
_MAX_CONTEXT = (1 << 31) - 1

_COMMON = (
    Key("block_count", "integer", required=True, low=1, high=_MAX_LAYERS),
    Key("context_length", "integer", required=True, low=1, high=_MAX_CONTEXT),
    Key("embedding_length", "integer", required=True, low=1, high=_MAX_WIDTH),
    Key("feed_forward_length", "integer", required=True, low=1, high=_MAX_WIDTH, per_layer=True),
    Key("attention.head_count", "integer", required=True, low=1, high=65536, per_layer=True),
    Key(
        "attention.head_count_kv",
        "integer",
        low=1,
        high=65536,
        per_layer=True,
        default=SAME + "attention.head_count",
    ),
    Key("attention.key_length", "integer", low=1, high=65536),
    Key("attention.value_length", "integer", low=1, high=65536),
    Key("attention.layer_norm_rms_epsilon", "number", required=True, above=0, high=1),
    Key("attention.scale", "number", low=0, high=1e6),
    Key("rope.dimension_count", "integer", low=2, high=65536),
    Key("rope.freq_base", "number", above=0, high=1e12, default=10000.0),
    Key("rope.scaling.type", "text", choices=("none", "linear", "yarn", "longrope"), default="linear"),
    Key("rope.scaling.factor", "number", above=0, high=1e6),
    Key("rope.scale_linear", "number", above=0, high=1e6),
    Key("rope.scaling.original_context_length", "integer", low=1, high=_MAX_CONTEXT, default=SAME + "context_length"),
    Key("vocab_size", "integer", low=1, high=1 << 24),
    Key("expert_count", "integer", low=0, high=0, default=0, unsupported="mixtures of experts"),
    Key(
        "nextn_predict_layers",
        "integer",
        low=0,
        high=0,
        default=0,
        unsupported="layers that predict further tokens",
    ),
)


_SOFTCAPS = (
    Key("attn_logit_softcapping", "number", above=0, high=1e6),
    Key("final_logit_softcapping", "number", above=0, high=1e6),
)

Tensors = dict[str, tuple[tuple[str, ...], Union[bool, str]]]

_MODEL: Tensors = {
    "token_embd.weight": (("n_embd", "n_vocab"), True),
    "output_norm.weight": (("n_embd",), True),
    "output.weight": (("n_embd", "n_vocab"), False),  # absent where the head is tied to token_embd
}
_ROPE_FACTORS: Tensors = {"rope_freqs.weight": (("n_rot_half",), False)}
_LAYER: Tensors = {
    "attn_norm.weight": (("n_embd",), True),
    "attn_q.weight": (("n_embd", "n_q"), True),
    "attn_k.weight": (("n_embd", "n_k"), True),
    "attn_v.weight": (("n_embd", "n_v"), True),
    "attn_output.weight": (("n_out", "n_embd"), True),
    "ffn_norm.weight": (("n_embd",), True),
    "ffn_gate.weight": (("n_embd", "n_ff"), True),
    "ffn_up.weight": (("n_embd", "n_ff"), True),
    "ffn_down.weight": (("n_ff", "n_embd"), True),
}
_ROPE_FACTORS_NEEDED: Tensors = {"rope_freqs.weight": (("n_rot_half",), True)}
_QKV_BIAS: Tensors = {
    "attn_q.bias": (("n_q",), False),
    "attn_k.bias": (("n_k",), False),
    "attn_v.bias": (("n_v",), False),
}
_OTHER_BIAS: Tensors = {
    "attn_output.bias": (("n_embd",), False),
    "ffn_gate.bias": (("n_ff",), False),
    "ffn_up.bias": (("n_ff",), False),
    "ffn_down.bias": (("n_embd",), False),
}
_HEAD_NORMS: Tensors = {
    "attn_q_norm.weight": (("n_head_dim",), True),
    "attn_k_norm.weight": (("n_head_dim",), True),
}
_POST_NORMS: Tensors = {
    "post_attention_norm.weight": (("n_embd",), True),
    "post_ffw_norm.weight": (("n_embd",), True),
}

_GEMMA4_WINDOW = (
    Key("attention.sliding_window", "integer", required=True, low=1, high=_MAX_CONTEXT),
    # Required: which layers there are is no rule that a default could know.
    Key("attention.sliding_window_pattern", "flags", required=True, low=1, high=_MAX_LAYERS),
    Key("attention.key_length_swa", "integer", required=True, low=1, high=65536),
    Key("attention.value_length_swa", "integer", required=True, low=1, high=65536),
    Key("attention.shared_kv_layers", "integer", low=0, high=_MAX_LAYERS, default=0),
    Key("rope.freq_base_swa", "number", above=0, high=1e12, default=10000.0),
    Key("rope.dimension_count_swa", "integer", low=2, high=65536, default=SAME + "attention.key_length_swa"),
    _SOFTCAPS[1],
)
_GEMMA4_LAYER: Tensors = {
    **{name: _LAYER[name] for name in ("attn_norm.weight", "attn_output.weight", "ffn_norm.weight")},
    **{name: _LAYER[name] for name in ("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")},
    # Either attn_qkv, or attn_q and, in layers with keys of their own, attn_k; without attn_v, V is K.
    "attn_qkv.weight": (("n_embd", "n_qkv"), False),
    "attn_q.weight": (("n_embd", "n_q"), "not fused"),
    "attn_k.weight": (("n_embd", "n_k"), "own keys, not fused"),
    "attn_v.weight": (("n_embd", "n_v"), False),
    "attn_q_norm.weight": (("n_head_dim",), True),
    "attn_k_norm.weight": (("n_head_dim",), "own keys"),
    **_POST_NORMS,
    "layer_output_scale.weight": (("one",), False),
    "inp_gate.weight": (("n_embd", "n_per_layer"), "per layer"),
    "proj.weight": (("n_per_layer", "n_embd"), "per layer"),
    "post_norm.weight": (("n_embd",), "per layer"),
}

ARCHITECTURES: dict[str, Architecture] = {
    entry.name: entry
    for entry in (
        Architecture(
            "llama",
            _COMMON,
            {**_LAYER, **_QKV_BIAS, **_OTHER_BIAS},
            {**_MODEL, **_ROPE_FACTORS},
            rope_is_whole_head=True,
        ),
        Architecture("qwen2", _COMMON, {**_LAYER, **_QKV_BIAS}, {**_MODEL, "output.bias": (("n_vocab",), False)}),
        Architecture("qwen3", _COMMON, {**_LAYER, **_HEAD_NORMS}, _MODEL),
        Architecture(
            "gemma2",
            (
                *_COMMON,
                Key("attention.sliding_window", "integer", low=1, high=_MAX_CONTEXT, default=4096),
                Key("attention.sliding_window_pattern", "flags", low=1, high=_MAX_LAYERS, default=2),
                Key("rope.freq_base_swa", "number", above=0, high=1e12, default=SAME + "rope.freq_base"),
                *_SOFTCAPS,
            ),
            {**_LAYER, **_POST_NORMS},
            _MODEL,
        ),
        Architecture(
            "gemma3",
            (
                *_COMMON,
                # 0 or absent: every layer attends to everything.
                Key("attention.sliding_window", "integer", low=0, high=_MAX_CONTEXT, default=0),
                Key("attention.sliding_window_pattern", "flags", low=1, high=_MAX_LAYERS, default=6),
                Key("rope.freq_base_swa", "number", above=0, high=1e12, default=10000.0),
                *_SOFTCAPS,
            ),
            {**_LAYER, **_HEAD_NORMS, **_POST_NORMS},
            _MODEL,
        ),
        Architecture(
            "gemma4",
            (
                *_COMMON,
                *_GEMMA4_WINDOW,
                Key("embedding_length_per_layer_input", "integer", low=0, high=_MAX_WIDTH, default=0),
            ),
            _GEMMA4_LAYER,
            {
                **_MODEL,
                **_ROPE_FACTORS_NEEDED,
                "per_layer_token_embd.weight": (("n_per_layer_all", "n_vocab"), "per layer"),
                "per_layer_model_proj.weight": (("n_embd", "n_per_layer_all"), "per layer"),
                "per_layer_proj_norm.weight": (("n_per_layer",), "per layer"),
            },
            rope_is_whole_head=True,
        ),
        Architecture(
            "gemma4-assistant",
            (
                *(key for key in _COMMON if key.suffix != "nextn_predict_layers"),
                *_GEMMA4_WINDOW,
                # Every layer predicts: the key equals block_count, and says nothing of how many tokens can be drafted.
                Key("nextn_predict_layers", "integer", required=True, low=1, high=_MAX_LAYERS),
                Key("embedding_length_out", "integer", required=True, low=1, high=_MAX_WIDTH),
            ),
            {
                **{name: _GEMMA4_LAYER[name] for name in ("attn_norm.weight", "attn_output.weight", "ffn_norm.weight")},
                **{name: _GEMMA4_LAYER[name] for name in ("ffn_gate.weight", "ffn_up.weight", "ffn_down.weight")},
                **_POST_NORMS,
                "attn_q.weight": (("n_embd", "n_q"), True),
                "attn_q_norm.weight": (("n_head_dim",), True),
                "layer_output_scale.weight": (("one",), True),
            },
            {
                "token_embd.weight": (("n_embd", "n_vocab"), True),
                "output_norm.weight": (("n_embd",), True),
                "nextn.pre_projection.weight": (("n_target_twice", "n_embd"), True),
                "nextn.post_projection.weight": (("n_embd", "n_target"), True),
                **_ROPE_FACTORS_NEEDED,
            },
            rope_is_whole_head=True,
        ),
        Architecture(
            "qwen35",
            (
                *(key for key in _COMMON if key.suffix != "nextn_predict_layers"),
                Key("nextn_predict_layers", "integer", low=0, high=1, default=0, unsupported="several blocks ahead"),
                Key("full_attention_interval", "integer", low=1, high=_MAX_LAYERS, default=4),
                # All false stands for: by the interval.
                Key("attention.recurrent_layers", "flags", low=1, high=1, default=1),
                Key("ssm.conv_kernel", "integer", required=True, low=2, high=64),
                Key("ssm.inner_size", "integer", required=True, low=1, high=_MAX_WIDTH),
                # A multiple of the 16 lanes of a sum.
                Key("ssm.state_size", "integer", required=True, low=16, high=4096),
                Key("ssm.time_step_rank", "integer", required=True, low=1, high=65536),
                Key("ssm.group_count", "integer", required=True, low=1, high=65536),
            ),
            {
                **{name: _LAYER[name] for name in ("attn_norm.weight", "ffn_gate.weight", "ffn_up.weight")},
                "ffn_down.weight": _LAYER["ffn_down.weight"],
                "post_attention_norm.weight": (("n_embd",), True),
                # Of a layer with attention, or of one with a delta net.
                "attn_q.weight": (("n_embd", "n_q_twice"), "attention"),
                "attn_k.weight": (("n_embd", "n_k"), "attention"),
                "attn_v.weight": (("n_embd", "n_v"), "attention"),
                "attn_output.weight": (("n_out", "n_embd"), "attention"),
                "attn_q_norm.weight": (("n_head_dim",), "attention"),
                "attn_k_norm.weight": (("n_head_dim",), "attention"),
                "attn_qkv.weight": (("n_embd", "n_channels"), "delta net"),
                "attn_gate.weight": (("n_embd", "n_inner"), "delta net"),
                "ssm_conv1d.weight": (("n_kernel", "n_channels"), "delta net"),
                "ssm_beta.weight": (("n_embd", "n_v_heads"), "delta net"),
                "ssm_alpha.weight": (("n_embd", "n_v_heads"), "delta net"),
                "ssm_dt.bias": (("n_v_heads",), "delta net"),
                "ssm_a": (("n_v_heads",), "delta net"),
                "ssm_norm.weight": (("n_state",), "delta net"),
                "ssm_out.weight": (("n_inner", "n_embd"), "delta net"),
                "nextn.eh_proj.weight": (("n_embd_twice", "n_embd"), "nextn"),
                "nextn.enorm.weight": (("n_embd",), "nextn"),
                "nextn.hnorm.weight": (("n_embd",), "nextn"),
                "nextn.embed_tokens.weight": (("n_embd", "n_vocab"), False),
                "nextn.shared_head_head.weight": (("n_embd", "n_vocab"), False),
                "nextn.shared_head_norm.weight": (("n_embd",), False),
            },
            _MODEL,
        ),
    )
}
