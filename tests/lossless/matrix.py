# SPDX-License-Identifier: Apache-2.0
"""The matrix of models, back ends, prompts and strategies, and one generation of it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from reference_engine.backends import make_backend
from reference_engine.gguf_file import open_gguf
from reference_engine.model import Model
from reference_engine.model_cache import find_model
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.mtp import MtpHead
from reference_engine.speculation.mtp_head import head_of
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.strategies import StrategyOptions, make_stack
from reference_engine.speculation.verify import Run, generate
from reference_engine.tiny import DRAFTERS, PROMPTS, tiny_model
from reference_engine.tokenizer import load_tokenizer

N_PREDICT = 512
TARGETS = ("tiny-llama", "tiny-gemma4")
REAL = "smollm2"
"""SmolLM2-135M, where make model has brought it: n-grams alone, because there is no draft for it."""

BACKENDS = ("float", "npu:w8a8-per-channel", "npu:w8a8-segment", "npu:w4a4-hadamard")
NGRAMS = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")
OPTIONS = StrategyOptions(size_n=3, size_m=12, n_match=4, n_min=1, n_max=16)


def strategies_of(target: str) -> tuple[str, ...]:
    """All that this target can have, and two stacks."""
    if target == REAL:
        return (*NGRAMS, "ngram-mod,ngram-cache")
    own = ("draft-simple",) if target == "tiny-llama" else ("draft-mtp",)
    return (*NGRAMS, *own, f"ngram-mod,{own[0]}", f"ngram-cache,{own[0]}")


@dataclass
class Loaded:
    """A target in one back end, with what drafts for it."""

    model: Model
    draft: Model | None = None
    head_of: Callable[[EngineSequence], MtpHead] | None = None
    prompts: dict[str, list[int]] = field(default_factory=dict)


@lru_cache(maxsize=2)
def loaded(target: str, backend: str) -> Loaded:
    return load(target, backend)


def load(target: str, backend: str) -> Loaded:
    """The NPU has one user: what drafts for a target on the device is computed by the emulation, to the same bits."""
    model = Model.load(path_of(target), make_backend(backend, threads=2), threads=2, n_ctx=1024)
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
    it = loaded(target, backend)
    return generate(EngineSequence(it.model), None, it.prompts[prompt], n_predict=n_predict)


def speculative(target: str, backend: str, prompt: str, strategy: str, n_predict: int = N_PREDICT) -> tuple[Run, Stack]:
    return speculate(loaded(target, backend), prompt, strategy, n_predict)


def speculate(it: Loaded, prompt: str, strategy: str, n_predict: int) -> tuple[Run, Stack]:
    sequence = EngineSequence(it.model)
    draft, head = it.draft, it.head_of
    stack = make_stack(
        strategy.split(","),
        OPTIONS,
        draft=None if draft is None else lambda: EngineSequence(draft),
        mtp=None if head is None else lambda: head(sequence),
    )
    return generate(sequence, stack, it.prompts[prompt], n_predict=n_predict), stack


def model_sha256(name: str) -> str:
    return hashlib.sha256(tiny_model(name).read_bytes()).hexdigest()
