# SPDX-License-Identifier: Apache-2.0
"""Which weights are matmuls, in which order a graph meets them, and which of them a matmul-only back end takes.

The order is llama.cpp's (b11434, src/models): q, k and v are followed by bias, norm or rope each, which stay on the
CPU, so each is a run of its own; gate and up stand next to each other. Held against the campaign's log on gemma-4-12b:
563 graph splits and 1.17 matmuls in a call of the back end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

RUNS: tuple[tuple[str, ...], ...] = (
    ("attn_qkv",),
    ("attn_q",),
    ("attn_k",),
    ("attn_v",),
    ("attn_gate",),
    ("ssm_in",),
    ("ssm_alpha",),
    ("ssm_beta",),
    ("ssm_out",),
    ("attn_output",),
    ("ffn_gate", "ffn_up"),
    ("ffn_down",),
    ("inp_gate",),
    ("proj",),
)
"""Weights of one layer in graph order. Those in one tuple have no other operation between them."""

INPUTS: tuple[tuple[str, ...], ...] = (
    ("attn_qkv", "attn_q", "attn_k", "attn_v", "attn_gate", "ssm_in", "ssm_alpha", "ssm_beta"),
    ("ffn_gate", "ffn_up"),
)
"""Weights of one layer that multiply the same activation."""

_LAYER = re.compile(r"blk\.(\d+)\.(\w+)\.weight")
_ORDER = {role: i for i, role in enumerate(role for run in RUNS for role in run)}
HEAD = "output"
_OF_THE_MODEL = {
    # gemma4: rows of it are added to every layer; gemma4-assistant: into and out of the drafter's own width
    "per_layer_model_proj.weight": "per_layer_model_proj",
    "nextn.pre_projection.weight": "nextn.pre_projection",
    "nextn.post_projection.weight": "nextn.post_projection",
}


@dataclass(frozen=True)
class Role:
    """Where a weight stands in the graph: its layer (None where it belongs to none) and its name there."""

    layer: int | None
    name: str

    @property
    def load_order(self) -> tuple[int, int]:
        """The head is loaded first, then layer by layer. Where a type has several pipelines, they go by this order."""
        if self.layer is None:
            return (-2 if self.name == HEAD else -1, 0)
        return (self.layer, _ORDER[self.name])


def role_of(tensor: str, *, tied_head: bool) -> Role | None:
    """The role of a matmul weight; None for anything else. ``tied_head``: token_embd serves as the head too."""
    if tensor == "output.weight" or (tied_head and tensor == "token_embd.weight"):
        return Role(None, HEAD)
    if tensor in _OF_THE_MODEL:
        return Role(None, _OF_THE_MODEL[tensor])
    match = _LAYER.fullmatch(tensor)
    if match is None or match[2] not in _ORDER:
        return None
    return Role(int(match[1]), match[2])


def why_not(dims: tuple[int, ...], k_align: int, n_align: int) -> str | None:
    """Why a weight of GGUF ``dims`` (K, N) stays on the CPU; None where it goes to the NPU.

    The rules are those of rk-llama.cpp's ``supports_op``: a matrix whose K and N are aligned.
    """
    K, N = (*dims, 1)[:2]
    if any(dim != 1 for dim in dims[2:]):
        return f"it has {len(dims)} dimensions; batched and expert matmuls are not offloaded"
    if K % k_align:
        return f"K {K} is no multiple of {k_align}"
    if N % n_align:
        return f"N {N} is no multiple of {n_align}"
    return None


def count_runs(routed: Mapping[int | None, set[str]], biased: frozenset[tuple[int | None, str]]) -> int:
    """Calls of a matmul-only back end for one forward pass: neighbours are one call, everything else its own.

    ``routed``: names on the NPU by layer. ``biased``: weights followed by a bias, which the CPU adds.
    """
    count = 0
    for layer, names in routed.items():
        if layer is None:
            count += len(names)
            continue
        for run in RUNS:
            joined = False
            for name in run:
                if name not in names:
                    joined = False
                    continue
                count += not joined
                joined = (layer, name) not in biased
    return count


def count_splits(runs: int, *, head_is_last: bool) -> int:
    """Graph splits of ``runs`` calls with CPU work before each, and after the last one unless it ends the graph."""
    return 2 * runs + (0 if head_is_last and runs else 1)
