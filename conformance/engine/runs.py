# SPDX-License-Identifier: Apache-2.0
"""Greedy runs of a model: tokens with the margin of each step, and speculation beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from conformance.bench import Wrong
from conformance.engine.bench import EngineBench
from conformance.engine.targets import Target
from reference_engine.backends.interface import Backend
from reference_engine.gguf_file import open_gguf
from reference_engine.model import Model
from reference_engine.speculation import verify
from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.explain import explain
from reference_engine.speculation.mtp import MtpHead
from reference_engine.speculation.mtp_head import head_of
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.strategies import StrategyOptions, make_stack

NGRAMS = ("ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache")
OPTIONS = StrategyOptions(size_n=3, size_m=12, n_match=4, n_min=1, n_max=16)
"""So short that n-grams draft in a text of a few hundred tokens."""

_MTP_ARCHITECTURES = ("gemma4-assistant",)


@dataclass(frozen=True)
class Greedy:
    """``margins``: how far each chosen logit stood above the second, in nats."""

    ids: tuple[int, ...]
    margins: tuple[float, ...]


def greedy(model: Model, prompt: Sequence[int], count: int) -> Greedy:
    """``count`` tokens one by one, whatever they are (end tokens do not end it)."""
    cache = model.new_cache()
    row = model.forward(prompt, cache).logits[0]
    ids: list[int] = []
    margins: list[float] = []
    while True:
        second, first = np.partition(row.astype(np.float64), -2)[-2:]
        ids.append(int(np.argmax(row)))
        margins.append(float(first - second))
        if len(ids) == count:
            return Greedy(tuple(ids), tuple(margins))
        row = model.forward(ids[-1:], cache).logits[0]


def sequence_and_stack(
    strategy: str,
    sequence: EngineSequence,
    draft: Model | None,
    mtp: Callable[[EngineSequence], MtpHead] | None,
) -> tuple[EngineSequence, Stack]:
    """The sequence and fresh strategies for it; ``strategy`` names one, or several with commas between."""
    stack = make_stack(
        strategy.split(","),
        OPTIONS,
        draft=None if draft is None else lambda: EngineSequence(draft),
        mtp=None if mtp is None else lambda: mtp(sequence),
    )
    return sequence, stack


@dataclass
class Speculator:
    """A model with what drafts for it."""

    model: Model
    strategies: tuple[str, ...]
    draft: Model | None = None
    mtp: Callable[[EngineSequence], MtpHead] | None = None

    def make(self, strategy: str) -> tuple[EngineSequence, Stack]:
        """The model with an empty cache, and fresh strategies."""
        return sequence_and_stack(strategy, EngineSequence(self.model), self.draft, self.mtp)

    def drafted(self, strategy: str, prompt: Sequence[int], greedy_ids: Sequence[int]) -> int:
        """Runs a strategy; how many tokens it drafted. Wrong where its tokens are not those of greedy decoding."""
        target, stack = self.make(strategy)
        run = verify.generate(target, stack, prompt, n_predict=len(greedy_ids))
        if tuple(run.tokens) != tuple(greedy_ids):
            # The explanation traces both runs again, so it sees what was wrong and not only that it was.
            found = explain(lambda: self.make(strategy), prompt, n_predict=len(greedy_ids))
            why = "it happens no more when run again" if found is None else found.sentence()
            raise Wrong(f"{strategy} is NOT lossless: {why}")
        return sum(s.n_gen_tokens for s in stack.statistics)


def speculator(bench: EngineBench, target: Target, model: Model, beside: Backend) -> Speculator:
    """``beside`` computes what drafts: the device has one user, and a draft decides no token."""
    if target.drafter is not None:
        drafter = open_gguf(target.drafter)
        if drafter.architecture in _MTP_ARCHITECTURES:
            head = head_of(model, drafter, beside)
            return Speculator(model, (*NGRAMS, "draft-mtp", "ngram-mod,draft-mtp", "ngram-cache,draft-mtp"), mtp=head)
        drafter.close()
        draft = bench.plain_model(Target(f"{target.name} (draft)", target.drafter), beside, n_ctx=model.n_ctx)
        names = (*NGRAMS, "draft-simple", "ngram-mod,draft-simple", "ngram-cache,draft-simple")
        return Speculator(model, names, draft=draft)
    try:
        own = head_of(model, None, None)  # a nextn block in the target's own file
    except SpeculationError:
        return Speculator(model, (*NGRAMS, "ngram-mod,ngram-cache"))
    return Speculator(model, (*NGRAMS, "draft-mtp", "ngram-mod,draft-mtp", "ngram-cache,draft-mtp"), mtp=own)
