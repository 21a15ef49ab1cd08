# SPDX-License-Identifier: Apache-2.0
"""Greedy generation with and without drafts: the target decides each token, drafts only save passes.

The order of steps is llama.cpp's (b11434, common/sampling.cpp and examples/speculative-simple): the batch of a round is
the last token and the draft; row i of its logits must choose draft token i for that to be accepted; the first row that
chooses otherwise gives the next token; a row past an end-of-generation token is not looked at.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from reference_engine.speculation.drafter import Round, SpeculationError, TargetBatch
from reference_engine.speculation.stack import Stack

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Rows:
    """``logits``: float32 [n tokens, n_vocab]. ``hidden``: float32 [n tokens, n_embd] or None."""

    logits: NDArray[np.float32]
    hidden: NDArray[np.float32] | None = None


class SequenceModel(Protocol):
    """A model with the cache of one sequence."""

    n_ctx: int
    n_vocab: int

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        """One pass over ``tokens`` at positions ``first`` and on; the cache ends just before ``first``."""

    def fill(self, tokens: Sequence[int], first: int, *, hidden: bool) -> NDArray[np.float32] | None:
        """The same without logits; the hidden state of every token where ``hidden`` is asked for."""

    def truncate(self, n_past: int) -> None:
        """Forget positions ``n_past`` and on; everything is then as if they had never been."""


@dataclass(frozen=True)
class Step:
    """One round: where it began, what was drafted, what came out (the accepted tokens and one more)."""

    position: int
    draft: tuple[int, ...]
    tokens: tuple[int, ...]

    @property
    def n_accepted(self) -> int:
        return len(self.tokens) - 1


@dataclass
class Run:
    """What came out. ``tokens`` without the prompt; ``steps`` one for each pass of the target after the prompt."""

    tokens: list[int] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    stopped_by: str = "length"

    @property
    def passes_per_token(self) -> float:
        return len(self.steps) / len(self.tokens) if self.tokens else 0.0

    @property
    def sha256(self) -> str:
        return tokens_sha256(self.tokens)


def tokens_sha256(tokens: Sequence[int]) -> str:
    """Over the ids as little-endian int32."""
    return hashlib.sha256(np.asarray(tokens, dtype="<i4").tobytes()).hexdigest()


def chosen(logits: NDArray[np.float32]) -> int:
    """The greedy token of one row: the highest logit, the lowest id where several are."""
    return int(np.argmax(logits))


def accepted(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
    """The tokens that rows [len(draft) + 1, n_vocab] decide: drafted ones while they are right, then one more."""
    tokens: list[int] = []
    for row, guess in zip(logits, draft, strict=False):
        token = chosen(row)
        tokens.append(token)
        if token != guess or token in eog:
            return tokens
    return [*tokens, chosen(logits[len(draft)])]


def known(draft: list[int], n_vocab: int) -> list[int]:
    """``draft`` up to the first token that the target does not have: vocabularies may differ in length by a little."""
    return next((draft[:i] for i, token in enumerate(draft) if token >= n_vocab), draft)


def generate(
    target: SequenceModel,
    stack: Stack | None,
    prompt: Sequence[int],
    *,
    n_predict: int,
    eog: Collection[int] = (),
    on_step: Callable[[Step], None] | None = None,
) -> Run:
    """Greedy tokens after ``prompt``; ``stack`` None is plain decoding. The target's cache is emptied first.

    SpeculationError where the prompt is empty or does not fit the context.
    """
    if not prompt:
        raise SpeculationError("an empty prompt: nothing decides the first token")
    if len(prompt) >= target.n_ctx:
        raise SpeculationError(f"the prompt has {len(prompt)} tokens and the context {target.n_ctx}: no room is left")
    tokens, last, run = list(prompt[:-1]), prompt[-1], Run()
    target.truncate(0)
    if tokens:
        hidden = target.fill(tokens, 0, hidden=stack is not None and stack.wants_hidden)
        if stack is not None:
            stack.process(TargetBatch(tokens, 0, hidden))
    if stack is not None:
        stack.begin(tokens)
    while len(run.tokens) < n_predict:
        room = target.n_ctx - len(tokens) - 1
        if room < 1:
            run.stopped_by = "context"
            return run
        longest = min(room - 1, n_predict - len(run.tokens) - 1)
        draft = stack.draft(Round(tokens, last, longest)) if stack is not None else []
        draft = known(draft, target.n_vocab)
        rows = target.forward([last, *draft], len(tokens))
        if stack is not None:
            stack.process(TargetBatch([last, *draft], len(tokens), rows.hidden))
        step = Step(len(tokens), tuple(draft), tuple(accepted(rows.logits, draft, eog)))
        tokens += (last, *step.tokens[:-1])
        last = step.tokens[-1]
        target.truncate(len(tokens))
        if stack is not None:
            stack.accept(step.n_accepted, len(tokens))
        run.tokens += step.tokens
        run.steps.append(step)
        if on_step is not None:
            on_step(step)
        if last in eog:
            run.stopped_by = "end of generation"
            return run
    return run
