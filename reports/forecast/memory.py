# SPDX-License-Identifier: Apache-2.0
"""Whether a model fits: device buffers by IOMMU domain, file descriptors, keys and values, main memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reference_engine.gguf_file import GgufFile
from reference_engine.npu_plan import NpuPlan
from reports.contract import JsonValue
from reports.forecast.board import Board, number
from reports.forecast.passes import KV_BYTES, kv_row_bytes
from reports.forecast.work import Work

BATCH_ROWS = 512
"""The longest batch that a prompt is cut into (n_ubatch of llama.cpp)."""

RESERVE_BYTES = 512 << 20
"""What system and program need beside the model. A model that fits only without it is told so."""


@dataclass(frozen=True)
class Need:
    """One thing that is needed and what there is of it. ``fits`` None: not known, and ``why`` says what would tell."""

    what: str
    needed: int | None
    there: int | None
    fits: bool | None
    why: str

    def as_json(self) -> dict[str, JsonValue]:
        return {"what": self.what, "needed": self.needed, "there": self.there, "fits": self.fits, "why": self.why}


def kv_bytes(work: Work, kind: str, context: int) -> int | None:
    """Bytes of the cache at ``context`` tokens; None where heads are not known.

    A layer with a window keeps the window and one batch (llama.cpp b11434, sliding-window cache).
    """
    if work.attention is None:
        return None
    held = 0.0
    for layer in work.attention:
        cells = min(context, layer.window + BATCH_ROWS) if layer.window else context
        held += 0.0 if layer.shared else kv_row_bytes(layer, kind) * cells
    return int(held)


def kv_table(work: Work, contexts: Sequence[int]) -> dict[str, JsonValue]:
    """Bytes of the cache by type, then by context."""
    return {kind: {str(context): kv_bytes(work, kind, context) for context in contexts} for kind in KV_BYTES}


def needs(board: Board, model: GgufFile, plan: NpuPlan, work: Work, *, context: int, kv: str) -> list[Need]:
    """What the model needs under ``plan`` at ``context`` tokens, each held against what the report says there is."""
    found = [_domains(board, plan), _descriptors(board, plan)]
    cache = kv_bytes(work, kv, context)
    device = plan.weight_bytes + plan.a_bytes(BATCH_ROWS) + plan.c_bytes(BATCH_ROWS)
    host = sum(tensor.n_bytes for tensor in model.tensors.values())
    on_npu = sum(model.tensors[tensor.name].n_bytes for tensor in plan.routed if tensor.name != "token_embd.weight")
    if cache is None:
        found.append(Need("main memory", None, None, None, "keys and values of this architecture are not known"))
        return found
    needed = device + host - on_npu + cache
    found.append(_memory(board, needed, f"device buffers, weights of the CPU, {kv} cache of {context} tokens"))
    return found


def _domains(board: Board, plan: NpuPlan) -> Need:
    """Domains of device memory: weights that found no room were left to the CPU by the plan."""
    left = [tensor for tensor in plan.tensors if not tensor.routed and "IOMMU" in (tensor.reason or "")]
    used = len(plan.domains)
    windows = number(board.fact("iommu.windows"))
    why = f"{plan.weight_bytes / 1e9:.2f} GB of weights in {used} domains"
    if left:
        return Need("IOMMU domains", used, None, False, f"{why}; no room for {len(left)} more weights")
    if windows is None:
        return Need("IOMMU domains", used, None, None, f"{why}; unknown: iommu.windows of this board")
    there = int(windows)
    if there == 0:
        return Need("IOMMU domains", used, 0, None, f"{why}; without IOMMU contiguous memory (CMA) decides")
    return Need("IOMMU domains", used, there, used <= there, f"{why}; {board.fact('iommu.windows_sure') or 'assumed'}")


def _descriptors(board: Board, plan: NpuPlan) -> Need:
    needed = plan.descriptors((1, BATCH_ROWS))
    soft, hard = (number(board.fact(f"limits.nofile_{end}")) for end in ("soft", "hard"))
    if soft is None:
        return Need("file descriptors", needed, None, None, "unknown: limits.nofile_soft of this board")
    why = f"limit {soft:.0f}"
    if needed > soft and hard is not None and needed <= hard:
        why = f"limit {soft:.0f}: raise it with ulimit -n {needed + 256} (hard limit {hard:.0f})"
    return Need("file descriptors", needed, int(soft), needed <= soft, why)


def _memory(board: Board, needed: int, what: str) -> Need:
    whole = number(board.fact("memory.total_bytes"))
    if whole is None:
        return Need("main memory", needed, None, None, f"{what}; unknown: memory.total_bytes of this board")
    there = int(whole)
    fits = needed + RESERVE_BYTES <= there
    if not fits and needed <= there:
        what += "; it would leave less than 0.5 GB for the system"
    return Need("main memory", needed, there, fits, what)
