# SPDX-License-Identifier: Apache-2.0
"""One file for each architecture: its forward pass, to be read from top to bottom."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from reference_engine.errors import UsageError

if TYPE_CHECKING:
    from reference_engine.graphs.common import Graph

GRAPHS = {
    "llama": "LlamaGraph",
    "qwen2": "Qwen2Graph",
    "qwen3": "Qwen3Graph",
    "gemma2": "Gemma2Graph",
    "gemma3": "Gemma3Graph",
    "gemma4": "Gemma4Graph",
    "qwen35": "Qwen35Graph",
}


def graph_of(architecture: str) -> type[Graph]:
    """The class that builds and runs this architecture. UsageError for one that is not in ``GRAPHS``: a drafter."""
    if architecture not in GRAPHS:
        raise UsageError(f"a model of the architecture {architecture} drafts for another and does not run alone")
    module = importlib.import_module(f"reference_engine.graphs.{architecture}")
    graph: type[Graph] = getattr(module, GRAPHS[architecture])
    return graph
