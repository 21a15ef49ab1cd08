# SPDX-License-Identifier: Apache-2.0
"""Makes the head of draft-mtp for a target: from a drafter's file of its own, or from the nextn block of the target."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from reference_engine.gguf_hparams import load_hparams
from reference_engine.gguf_shapes import check_shapes
from reference_engine.gguf_vocabulary import TOKENS_KEY
from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.vocabulary import compare
from reference_engine.weights import Loader

if TYPE_CHECKING:
    from reference_engine.backends import Backend
    from reference_engine.gguf_file import GgufFile
    from reference_engine.model import Model
    from reference_engine.speculation.engine_sequence import EngineSequence
    from reference_engine.speculation.mtp import MtpHead


def head_of(target: Model, drafter: GgufFile | None, backend: Backend | None) -> Callable[[EngineSequence], MtpHead]:
    """Heads for sequences of ``target``; weights are loaded once, the drafter's matrices into ``backend``.

    SpeculationError where there is no head or its vocabulary is another, EngineError for a drafter of another target,
    GgufError.
    """
    if drafter is None or backend is None:
        return _own_head(target)
    from reference_engine.graphs.gemma4_assistant import Gemma4Assistant  # noqa: PLC0415  for this kind alone

    kind = drafter.architecture
    if kind != "gemma4-assistant":
        raise SpeculationError(f"draft-mtp needs a drafter of the architecture gemma4-assistant, not {kind}")
    _refuse_another_vocabulary(target.file, drafter)
    hparams = load_hparams(drafter)
    problems = check_shapes(drafter, hparams)
    if problems:
        raise problems[0]
    load = Loader(drafter, hparams, backend, range(hparams.n_layer))
    head = Gemma4Assistant(load, target, target.new_cache(), target.ops, gelu_half_table=target.gelu_half_table)
    return lambda sequence: head.on(sequence.cache)


def _refuse_another_vocabulary(target: GgufFile, drafter: GgufFile) -> None:
    """The token ids of a drafter are its target's, and its tokens are embedded by the target."""
    if TOKENS_KEY not in target.metadata or TOKENS_KEY not in drafter.metadata:
        return
    found = compare(target, drafter)
    if not found.compatible:
        raise SpeculationError(f"the drafter has another vocabulary than the target: {found.difference}")


def _own_head(target: Model) -> Callable[[EngineSequence], MtpHead]:
    from reference_engine.graphs.qwen35 import NextnHead, Qwen35Graph  # noqa: PLC0415  for this kind alone

    if not isinstance(target.graph, Qwen35Graph) or target.graph.nextn is None:
        raise SpeculationError(
            "draft-mtp needs a drafter trained on the target (name one with --draft), or a nextn block in the target"
        )
    head = NextnHead(target, target.graph.nextn)
    return lambda _: head.anew()
