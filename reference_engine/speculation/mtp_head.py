# SPDX-License-Identifier: Apache-2.0
"""Makes the head of draft-mtp for a target: from a drafter's file of its own, or from the nextn block of the target."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reference_engine.gguf_hparams import load_hparams
from reference_engine.gguf_shapes import check_shapes
from reference_engine.speculation.drafter import SpeculationError
from reference_engine.weights import Loader

if TYPE_CHECKING:
    from reference_engine.backends import Backend
    from reference_engine.gguf_file import GgufFile
    from reference_engine.speculation.engine_sequence import EngineSequence
    from reference_engine.speculation.mtp import MtpHead


def load_drafter(file: GgufFile, backend: Backend, sequence: EngineSequence) -> MtpHead:
    """The drafter in ``file`` on the cache of ``sequence``, its matrices in ``backend``.

    SpeculationError for a file that is no drafter, EngineError for one that was made for another target, GgufError.
    """
    from reference_engine.graphs.gemma4_assistant import Gemma4Assistant  # noqa: PLC0415  for this kind alone

    if file.architecture != "gemma4-assistant":
        raise SpeculationError(
            f"draft-mtp needs a drafter of the architecture gemma4-assistant, not {file.architecture}"
        )
    hparams = load_hparams(file)
    problems = check_shapes(file, hparams)
    if problems:
        raise problems[0]
    load = Loader(file, hparams, backend, range(hparams.n_layer))
    target = sequence.model
    return Gemma4Assistant(load, target, sequence.cache, target.ops, gelu_half_table=target.gelu_half_table)
