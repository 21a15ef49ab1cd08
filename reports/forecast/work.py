# SPDX-License-Identifier: Apache-2.0
"""What a forward pass of a model asks for: matmuls on the NPU and on the CPU, attention, keys and values.

Read off the header and the plan of what goes to the NPU; no weight is touched. Alike matmuls are kept once, with a
count.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparams import Hparams
from reference_engine.npu_plan import NpuPlan
from reference_engine.npu_route import HEAD
from reports.forecast.pipelines import KINDS


@dataclass(frozen=True)
class NpuMatmul:
    """One weight [N, K] on the NPU, multiplied as matmul type ``kind``.

    ``k_segments`` are sizes; ``n_segments`` the size of each core's share.
    """

    k_segments: tuple[int, ...]
    n_segments: tuple[int, ...]
    K: int
    N: int
    head: bool
    kind: int


@dataclass(frozen=True)
class CpuMatmul:
    """One weight [N, K] that stays on the CPU, of ``bytes_`` bytes in the file's type."""

    K: int
    N: int
    bytes_: int
    head: bool


@dataclass(frozen=True)
class AttentionLayer:
    """Heads of one layer. ``window`` 0: all positions. ``shared``: it reads another layer's keys and values."""

    heads: int
    kv_heads: int
    k_dim: int
    v_dim: int
    window: int = 0
    shared: bool = False

    def cells(self, depth: int) -> int:
        """Positions that a token behind ``depth`` others attends to."""
        return min(depth, self.window) if self.window else depth


@dataclass(frozen=True)
class Work:
    """One model under one plan. ``attention`` is None where the architecture is not known: no word on keys and values.

    ``experts``: the model is a mixture of experts, of which a token uses a part that the header alone does not tell.
    """

    npu: tuple[tuple[NpuMatmul, int], ...]
    cpu: tuple[tuple[CpuMatmul, int], ...]
    attention: tuple[AttentionLayer, ...] | None
    weights: int
    """Elements of all matmul weights."""
    calls: int
    """Calls of the back end in one pass (neighbouring matmuls are one call)."""
    experts: bool = False


def work_of(model: GgufFile, hparams: Hparams | None, plan: NpuPlan, *, fused: bool = False) -> Work:
    """The work of one pass of ``model`` as ``plan`` routes it.

    ``fused``: a runtime that pads what is not aligned, so that every weight is on the NPU.
    """
    npu: Counter[NpuMatmul] = Counter()
    cpu: Counter[CpuMatmul] = Counter()
    for tensor in plan.tensors:
        head, kind = tensor.role.name == HEAD, KINDS[tensor.pipeline.activation]
        if tensor.routed:
            npu[
                NpuMatmul(
                    tuple(size for _, size in tensor.k_segments),
                    tuple(size for _, _, size in tensor.n_segments),
                    tensor.K_op,
                    tensor.N,
                    head,
                    kind,
                )
            ] += 1
        elif fused:
            share = -(-tensor.N // plan.cores)
            npu[NpuMatmul((tensor.K,), (share,) * plan.cores, tensor.K, tensor.N, head, kind)] += 1
        else:
            cpu[CpuMatmul(tensor.K, tensor.N, model.tensors[tensor.name].n_bytes, head)] += 1
    return Work(
        npu=tuple(npu.items()),
        cpu=tuple(cpu.items()),
        attention=attention_of(model, hparams),
        weights=sum(tensor.K * tensor.N for tensor in plan.tensors),
        calls=plan.runs,
        experts=has_experts(model),
    )


def attention_of(model: GgufFile, hparams: Hparams | None) -> tuple[AttentionLayer, ...] | None:
    """Heads and windows of the layers that attend; None without hyper-parameters.

    A layer with a recurrent state (its ``ssm_out`` says so) keeps no keys and values.
    """
    if hparams is None:
        return None
    heads, kv_heads = hparams.layers("attention.head_count"), hparams.layers("attention.head_count_kv")
    window = hparams.optional_integer("attention.sliding_window")
    return tuple(
        AttentionLayer(
            heads[il],
            kv_heads[il],
            hparams.head_size(il),
            hparams.head_size(il, "value"),
            window if hparams.in_window(il) else 0,
            hparams.kv_source(il) != il,
        )
        for il in range(hparams.n_layer)
        if f"blk.{il}.ssm_out.weight" not in model.tensors
    )


def has_experts(model: GgufFile) -> bool:
    """Whether the model is a mixture of experts: by its key, or by stacked expert weights."""
    for key in model.metadata:
        if key.endswith(".expert_count"):
            value = model.metadata.get(key)
            if isinstance(value, int) and value > 0:
                return True
    return any("_exps." in name for name in model.tensors)
