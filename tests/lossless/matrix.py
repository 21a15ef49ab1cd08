# SPDX-License-Identifier: Apache-2.0
"""The matrix of models, back ends, prompts and strategies, and one generation of it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from conformance.engine.runs import NGRAMS, sequence_and_stack
from conformance.goldens.manifest import file_sha256
from reference_engine.backends import make_backend
from reference_engine.gguf_file import open_gguf
from reference_engine.model import Model
from reference_engine.model_cache import find_model
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.explain import Divergence, explain
from reference_engine.speculation.mtp import MtpHead
from reference_engine.speculation.mtp_head import head_of
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.verify import Run, generate
from reference_engine.tiny import DRAFTERS, NAMES, PROMPTS, tiny_model
from reference_engine.tokenizer import load_tokenizer

N_PREDICT = 512
TARGETS = tuple(name for name in NAMES if name not in DRAFTERS.values())
REAL = "smollm2"
"""SmolLM2-135M, where make model has brought it: n-grams alone, because there is no draft for it."""

BACKENDS = ("float", "npu:w8a8-per-channel", "npu:w8a8-segment", "npu:w4a4-hadamard")
DEVICE = "device:w8a8-per-channel"
"""On the mock, in a process of its own: the same bits as the emulation."""


def strategies_of(target: str) -> tuple[str, ...]:
    """All that this target can have, and two stacks."""
    if target == REAL:
        return (*NGRAMS, "ngram-mod,ngram-cache")
    own = ("draft-simple",) if target in DRAFTERS and "llama" in target else ("draft-mtp",)
    return (*NGRAMS, *own, f"ngram-mod,{own[0]}", f"ngram-cache,{own[0]}")


class NotLossless(AssertionError):
    """Speculation gave other tokens than greedy; the message and ``divergence`` say of which class the fault is."""

    def __init__(self, sentence: str, divergence: Divergence | None) -> None:
        super().__init__(sentence)
        self.divergence = divergence


@dataclass
class Loaded:
    """A target in one back end, with what drafts for it; ``sequence`` is what runs it."""

    model: Model
    draft: Model | None = None
    head_of: Callable[[EngineSequence], MtpHead] | None = None
    prompts: dict[str, list[int]] = field(default_factory=dict)
    sequence: type[EngineSequence] = EngineSequence

    def make(self, strategy: str) -> tuple[EngineSequence, Stack]:
        """The target with an empty cache, and fresh strategies."""
        return sequence_and_stack(strategy, self.sequence(self.model), self.draft, self.head_of)

    def greedy(self, prompt: str, n_predict: int, eog: Collection[int] = ()) -> Run:
        return generate(self.sequence(self.model), None, self.prompts[prompt], n_predict=n_predict, eog=eog)


@lru_cache(maxsize=2)
def loaded(target: str, backend: str) -> Loaded:
    return load(target, backend)


def load(target: str, backend: str, path: Path | None = None) -> Loaded:
    """``path``: another file for the same target.

    The NPU has one user: what drafts for a target on the device is computed by the emulation, to the same bits.
    """
    model = Model.load(path or path_of(target), make_backend(backend, threads=2), threads=2, n_ctx=1024)
    drafter, beside = DRAFTERS.get(target), backend.replace("device:", "npu:")
    found = Loaded(model)
    if target == "tiny-llama" and drafter is not None:
        found.draft = Model.load(tiny_model(drafter), make_backend(beside, threads=2), threads=2, n_ctx=1024)
    elif drafter is not None:
        found.head_of = head_of(model, open_gguf(tiny_model(drafter)), make_backend(beside, threads=2))
    elif target != REAL:
        found.head_of = head_of(model, None, None)
    tokenizer = load_tokenizer(model.file)
    found.prompts = {name: tokenizer.encode(text) for name, text in PROMPTS.items()}
    return found


def path_of(target: str) -> Path:
    """FileNotFoundError for the real model where it is not there."""
    if target != REAL:
        return tiny_model(target)
    path = find_model(REAL)
    if path is None:
        raise FileNotFoundError("SmolLM2 is not there; bring it with: make model")
    return path


def plain(target: str, backend: str, prompt: str, n_predict: int = N_PREDICT) -> Run:
    return loaded(target, backend).greedy(prompt, n_predict)


def speculate(it: Loaded, prompt: str, strategy: str, n_predict: int, eog: Collection[int] = ()) -> tuple[Run, Stack]:
    sequence, stack = it.make(strategy)
    return generate(sequence, stack, it.prompts[prompt], n_predict=n_predict, eog=eog), stack


def check_lossless(
    it: Loaded, prompt: str, strategy: str, n_predict: int, *, wanted: str, eog: Collection[int] = ()
) -> tuple[Run, Stack]:
    """The check of losslessness: speculation's tokens have the hash ``wanted``, that of greedy decoding.

    NotLossless with what the explanation finds.
    """
    run, stack = speculate(it, prompt, strategy, n_predict, eog)
    if run.sha256 == wanted:
        return run, stack
    found = explain(lambda: it.make(strategy), it.prompts[prompt], n_predict=n_predict, eog=eog)
    if found is None:
        raise NotLossless(f"{strategy}: speculation and greedy agree today, and neither with the tokens wanted", None)
    raise NotLossless(f"{strategy}: {found.sentence()}", found)


def model_sha256(target: str) -> str:
    return file_sha256(path_of(target))
