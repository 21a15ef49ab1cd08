# SPDX-License-Identifier: Apache-2.0
"""What ``inspect`` tells about the NPU: one section of its JSON document, from the header alone."""

from __future__ import annotations

from collections.abc import Sequence

from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_hparams import Hparams
from reference_engine.npu_plan import DOMAIN_BYTES, NpuPlan, plan
from reports.contract import JsonValue

PIPELINES = ("w8a8-per-channel", "w4a4-hadamard", "w16a16", "rk-llama-marfrit", "rk-llama-invisiofficial")
"""What is shown where no pipeline is named: each number of bits, and the forks' own choice by tensor type."""

PREFILL_ROWS = 512
USUAL_DESCRIPTORS = 1024
_SHOWN_NAMES = 4


def npu_section(
    model: GgufFile, hparams: Hparams | None, pipelines: Sequence[str] = PIPELINES, soc: str = "rk3588"
) -> dict[str, JsonValue]:
    """One entry for each pipeline; ``unavailable`` is the reason where there is none.

    ValueError for a pipeline or SoC that does not exist.
    """
    try:
        plans = [plan(model, hparams, name, soc) for name in pipelines]
    except ImportError as error:
        # The presets need numpy; everything else that inspect tells does not.
        return {"soc": soc, "pipelines": [], "unavailable": f"the table of pipelines cannot be read ({error})"}
    return {"soc": soc, "pipelines": [_entry(found) for found in plans], "unavailable": None}


def _entry(found: NpuPlan) -> dict[str, JsonValue]:
    Ms = (1, PREFILL_ROWS)
    return {
        "pipeline": found.pipeline.name,
        "cores": found.cores,
        "k_limit": found.k_limit,
        "matmul_weights": len(found.tensors),
        "routed": len(found.routed),
        "routed_elements": sum(tensor.K * tensor.N for tensor in found.routed),
        "elements": sum(tensor.K * tensor.N for tensor in found.tensors),
        "not_routed": _refused(found),
        "k_split": sum(len(tensor.k_segments) > 1 for tensor in found.routed),
        "weight_bytes": found.weight_bytes,
        "domain_bytes": list(found.domains),
        "domain_limit_bytes": DOMAIN_BYTES,
        "a_bytes": {str(M): found.a_bytes(M) for M in Ms},
        "c_bytes": {str(M): found.c_bytes(M) for M in Ms},
        "contexts": found.contexts(Ms),
        "descriptors": found.descriptors(Ms),
        "backend_calls": found.runs,
        "graph_splits": found.graph_splits,
        "activation_reuse": {
            "quantisations": found.reuse.quantisations,
            "within_call": found.reuse.within_call,
            "by_input": found.reuse.by_input,
            "reason": found.reuse.reason,
        },
        "doubts": list(dict.fromkeys(t.rule.doubt for t in found.routed if t.rule.doubt)),
    }


def _refused(found: NpuPlan) -> list[JsonValue]:
    """Weights that stay on the CPU, by reason, most frequent first."""
    by_reason: dict[str, list[str]] = {}
    for tensor in found.tensors:
        if tensor.reason is not None:
            by_reason.setdefault(tensor.reason, []).append(tensor.name)
    rows = sorted(by_reason.items(), key=lambda item: -len(item[1]))
    return [{"reason": reason, "count": len(names), "first": list(names[:_SHOWN_NAMES])} for reason, names in rows]
