# SPDX-License-Identifier: Apache-2.0
"""Tensors of a model, held against the shapes that its hyper-parameters demand."""

from __future__ import annotations

from collections.abc import Mapping

from reference_engine.gguf_errors import TENSOR_MISSING, TENSOR_SHAPE, GgufError, quoted
from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparam_table import ARCHITECTURES
from reference_engine.gguf_hparams import Hparams


def check_shapes(model: GgufFile, hparams: Hparams, layers: range | None = None) -> tuple[GgufError, ...]:
    """Every tensor of the architecture's table that is missing (NPU-F031) or has other dims (NPU-F032).

    ``layers`` limits the check to some layers, for a model of which only those are run. A one-dimensional tensor may be
    stored with trailing dims of 1.
    """
    table = ARCHITECTURES[hparams.architecture]
    problems = _against(model, "", table.model_tensors, _sizes(hparams, 0), _conditions(model, hparams, 0))
    for layer in layers if layers is not None else range(hparams.n_layer_all):
        conditions = _conditions(model, hparams, layer)
        problems += _against(model, f"blk.{layer}.", table.layer_tensors, _sizes(hparams, layer), conditions)
    return tuple(problems)


def unknown_tensors(model: GgufFile, hparams: Hparams) -> tuple[str, ...]:
    """Names that stand in no table: the engine would leave them unused."""
    table = ARCHITECTURES[hparams.architecture]
    known = set(table.model_tensors)
    known.update(f"blk.{layer}.{name}" for layer in range(hparams.n_layer_all) for name in table.layer_tensors)
    return tuple(name for name in model.tensors if name not in known)


def _sizes(hparams: Hparams, layer: int) -> dict[str, int]:
    heads = hparams.layers("attention.head_count")[layer]
    kv_heads = hparams.layers("attention.head_count_kv")[layer]
    key, value = hparams.head_size(layer), hparams.head_size(layer, "value")
    per_layer = hparams.optional_integer("embedding_length_per_layer_input")
    state, v_heads, groups = (
        hparams.optional_integer(f"ssm.{name}") for name in ("state_size", "time_step_rank", "group_count")
    )
    return {
        "n_embd": hparams.n_embd,
        "n_vocab": hparams.n_vocab,
        "n_ff": hparams.layers("feed_forward_length")[layer],
        "n_q": heads * key,
        "n_k": kv_heads * key,
        "n_v": kv_heads * value,
        "n_out": heads * value,
        "n_head_dim": key,
        "n_qkv": heads * key + kv_heads * (key + value),
        "n_rot_half": hparams.integer("rope.dimension_count") // 2,
        "n_per_layer": per_layer,
        "n_per_layer_all": per_layer * hparams.n_layer,
        "n_target": hparams.optional_integer("embedding_length_out"),
        "n_target_twice": 2 * hparams.optional_integer("embedding_length_out"),
        "n_embd_twice": 2 * hparams.n_embd,
        "n_q_twice": 2 * heads * key,
        "n_channels": (2 * groups + v_heads) * state,
        "n_inner": hparams.optional_integer("ssm.inner_size"),
        "n_kernel": hparams.optional_integer("ssm.conv_kernel"),
        "n_v_heads": v_heads,
        "n_state": state,
        "one": 1,
    }


def _conditions(model: GgufFile, hparams: Hparams, layer: int) -> dict[str, bool]:
    """Which of the table's conditions hold for a layer."""
    fused = f"blk.{layer}.attn_qkv.weight" in model.tensors
    own, recurrent = hparams.kv_source(layer) == layer, hparams.recurrent(layer)
    return {
        "not fused": not fused,
        "own keys": own,
        "own keys, not fused": own and not fused,
        "per layer": hparams.optional_integer("embedding_length_per_layer_input") > 0,
        "delta net": recurrent,
        "attention": not recurrent,
        "nextn": layer >= hparams.n_layer,
    }


def _against(
    model: GgufFile,
    prefix: str,
    table: Mapping[str, tuple[tuple[str, ...], bool | str]],
    sizes: Mapping[str, int],
    conditions: Mapping[str, bool],
) -> list[GgufError]:
    problems: list[GgufError] = []
    for suffix, (dims, need) in table.items():
        required = conditions[need] if isinstance(need, str) else need
        name = prefix + suffix
        expected = tuple(sizes[dim] for dim in dims)
        tensor = model.tensors.get(name)
        if tensor is None:
            if required:
                problems.append(
                    GgufError(TENSOR_MISSING, f"tensor {quoted(name)} of {list(expected)} is missing", None, model.path)
                )
            continue
        if tensor.dims[: len(expected)] != expected or any(dim != 1 for dim in tensor.dims[len(expected) :]):
            problems.append(
                GgufError(
                    TENSOR_SHAPE,
                    f"tensor {quoted(name)} has dims {list(tensor.dims)}; {list(expected)} ({' x '.join(dims)}) needed",
                    tensor.header_at,
                    tensor.path,
                )
            )
    return problems
