# SPDX-License-Identifier: Apache-2.0
"""A fault in each part of speculation: the tokens differ, and the explanation names the kind of fault and the place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.model import Model
from reference_engine.speculation import verify
from reference_engine.speculation.drafter import Round, Stateless
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.explain import (
    BUG,
    CACHE_FAULT,
    DRAFTER_LEAK,
    NEAR_TIE,
    Divergence,
    explain,
    first_difference,
)
from reference_engine.speculation.perturbed import AnotherOrder
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.verify import Rows, generate

PROMPT = [5, 9, 20, 7, 3, 11, 2, 30, 14, 8, 6, 1, 25, 17, 4, 13]
N_PREDICT = 48
ModelOf = Callable[[str], Model]


class Knowing(Stateless):
    """Drafts what greedy says, and every third time goes wrong in the middle."""

    name = "draft-simple"

    def __init__(self, text: Sequence[int], n_vocab: int, meddle: Callable[[], None] = lambda: None) -> None:
        self.text, self.n_vocab, self.meddle, self.calls = list(text), n_vocab, meddle, 0

    def draft(self, now: Round) -> list[int]:
        self.calls += 1
        self.meddle()
        at = len(now.tokens) + 1
        draft = self.text[at : at + 5]
        if self.calls % 3 and len(draft) > 2:
            draft[2] = (draft[2] + 1) % self.n_vocab
        return draft


def whole_text(model: Model) -> list[int]:
    return [*PROMPT, *generate(EngineSequence(model), None, PROMPT, n_predict=N_PREDICT).tokens]


def explained(
    model: Model,
    sequence: type[EngineSequence] = EngineSequence,
    make_stack: Callable[[], Stack] | None = None,
    eog: Collection[int] = (),
) -> Divergence | None:
    text = whole_text(model)
    stack_of = make_stack or (lambda: Stack([Knowing(text, model.n_vocab)]))
    return explain(
        lambda: (sequence(model), stack_of()),
        PROMPT,
        n_predict=N_PREDICT,
        eog=eog,
    )


def found(divergence: Divergence | None, cause: str) -> Divergence:
    assert divergence is not None, "the fault was not seen"
    assert divergence.cause == cause, divergence.sentence()
    return divergence


@pytest.mark.parametrize("architecture", ["llama", "gemma3"])
def test_without_a_fault_there_is_nothing_to_explain(architecture: str, model_of: ModelOf) -> None:
    assert explained(model_of(architecture)) is None


class StaleCells(EngineSequence):
    """Rows of rejected tokens stay where they are: what is written there later is dropped."""

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        layers = [self.cache.layer(i) for i in range(len(self.model.layers))]
        kept = [(layer.v_codes[:, first].copy(), layer.written > first) for layer in layers]
        rows = super().forward(tokens, first)
        for layer, (values, stale) in zip(layers, kept, strict=True):
            if stale and len(tokens) == 1:
                layer.v_codes[:, first] = values
        return rows


def test_cells_that_keep_rejected_tokens_are_a_cache_fault(model_of: ModelOf) -> None:
    class Fewer(Knowing):
        def draft(self, now: Round) -> list[int]:
            return super().draft(now) if self.calls % 2 == 0 else self.skip()

        def skip(self) -> list[int]:
            self.calls += 1
            return []

    model = model_of("llama")
    text = whole_text(model)
    divergence = explained(model, StaleCells, lambda: Stack([Fewer(text, model.n_vocab)]))
    step = found(divergence, CACHE_FAULT).first_step
    assert step is not None
    assert step[0] == "kqv_out"
    assert step[1] >= 0


class ShortRing(EngineSequence):
    """Rejected rows went into cells that the window still needs."""

    def truncate(self, n_past: int) -> None:
        if 0 < n_past < self.cache.n_past:
            for index, window in enumerate(self.model.graph.layer_windows):
                if window and n_past > window:
                    layer = self.cache.layer(index)
                    layer.v_codes[:, (n_past - window + 2) % layer.capacity] = layer.v_codes[:, n_past]
        super().truncate(n_past)


def test_a_ring_that_rejected_tokens_overwrote_is_a_cache_fault(model_of: ModelOf) -> None:
    divergence = found(explained(model_of("gemma3"), ShortRing), CACHE_FAULT)
    assert divergence.first_step is not None
    assert divergence.first_step[0] == "kqv_out"


class WrongPosition(EngineSequence):
    """After a rollback the next rows turn as if they stood one further on."""

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        rope = self.model.graph.rope  # type: ignore[attr-defined]
        true = rope.at
        if len(tokens) == 6:
            rope.at = lambda at, m: true(at + 1, m)
        try:
            return super().forward(tokens, first)
        finally:
            rope.at = true


def test_a_wrong_position_is_named(model_of: ModelOf) -> None:
    divergence = found(explained(model_of("llama"), WrongPosition), BUG)
    assert "another position" in divergence.why
    assert divergence.first_step is not None
    assert divergence.first_step == ("Qcur_rope", 0)


def test_a_drafter_that_writes_the_targets_cache_is_a_leak(model_of: ModelOf) -> None:
    model = model_of("llama")
    text = whole_text(model)
    sequences: list[EngineSequence] = []

    class Known(EngineSequence):
        def __init__(self, model: Model) -> None:
            super().__init__(model)
            sequences.append(self)

    def meddle() -> None:
        cache = sequences[-1].cache
        cache.layer(0).v_codes[:, cache.n_past - 2] = 0

    divergence = explained(model, Known, lambda: Stack([Knowing(text, model.n_vocab, meddle)]))
    assert "changed the target's cache" in found(divergence, DRAFTER_LEAK).why


def patched(monkeypatch: pytest.MonkeyPatch, wrong: Callable[..., list[int]]) -> None:
    monkeypatch.setattr(verify, "accepted", wrong)


def test_rows_verified_in_the_wrong_order_are_a_bug(monkeypatch: pytest.MonkeyPatch, model_of: ModelOf) -> None:
    right = verify.accepted

    def reversed_rows(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
        return right(logits[::-1], draft, eog)

    patched(monkeypatch, reversed_rows)
    assert "same bits" in found(explained(model_of("llama")), BUG).why


def test_one_token_too_many_taken_for_right_is_a_bug(monkeypatch: pytest.MonkeyPatch, model_of: ModelOf) -> None:
    right = verify.accepted

    def one_more(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
        tokens = right(logits, draft, eog)
        if len(tokens) > len(draft):
            return tokens
        return [*tokens[:-1], draft[len(tokens) - 1], verify.chosen(logits[len(tokens)])]

    patched(monkeypatch, one_more)
    assert "same bits" in found(explained(model_of("llama")), BUG).why


def test_one_right_token_too_few_is_a_bug(monkeypatch: pytest.MonkeyPatch, model_of: ModelOf) -> None:
    """The last accepted token is dropped, and the one after it kept."""
    right = verify.accepted

    def one_less(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
        tokens = right(logits, draft, eog)
        return [*tokens[:-2], tokens[-1]] if len(tokens) > 2 else tokens

    patched(monkeypatch, one_less)
    found(explained(model_of("llama")), BUG)


def test_going_on_behind_the_end_is_a_bug(monkeypatch: pytest.MonkeyPatch, model_of: ModelOf) -> None:
    right = verify.accepted
    model = model_of("llama")
    end = whole_text(model)[len(PROMPT) + 9]
    patched(monkeypatch, lambda logits, draft, eog: right(logits, draft, ()))
    found(explained(model, eog={end}), BUG)


def test_a_token_that_no_row_chose_is_a_bug(monkeypatch: pytest.MonkeyPatch, model_of: ModelOf) -> None:
    right = verify.accepted

    def made_up(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
        tokens = right(logits, draft, eog)
        return [*tokens[:-1], (tokens[-1] + 1) % logits.shape[1]] if len(tokens) == 3 else tokens

    patched(monkeypatch, made_up)
    assert "not the row's" in found(explained(model_of("llama")), BUG).why


def test_sums_in_another_order_are_a_near_tie(model_of: ModelOf) -> None:
    divergence = found(explained(model_of("llama"), AnotherOrder), NEAR_TIE)
    assert divergence.greedy.width != divergence.speculative.width
    assert divergence.gap_nats < 1e-3
    assert divergence.gap_ulp < 1e5
    assert 0 < divergence.largest_difference < 1e-3


class AnyOrder(EngineSequence):
    """Rows of several tokens differ by less than anything they decide."""

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        rows = super().forward(tokens, first)
        return Rows(rows.logits * np.float32(1 + 1e-6), rows.hidden) if len(tokens) > 1 else rows


def test_a_wrong_verification_is_a_bug_where_sums_are_in_another_order_too(
    monkeypatch: pytest.MonkeyPatch, model_of: ModelOf
) -> None:
    assert explained(model_of("llama"), AnyOrder) is None
    right = verify.accepted

    def made_up(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
        tokens = right(logits, draft, eog)
        return [*tokens[:-1], (tokens[-1] + 1) % logits.shape[1]] if len(tokens) == 3 else tokens

    patched(monkeypatch, made_up)
    divergence = found(explained(model_of("llama"), AnyOrder), BUG)
    assert "no rounding explains that" in divergence.why
    assert divergence.largest_difference > 0


def test_the_first_difference_of_two_texts() -> None:
    assert first_difference([1, 2, 3], [1, 2, 3]) is None
    assert first_difference([1, 2, 3], [1, 4, 3]) == 1
    assert first_difference([1, 2], [1, 2, 3]) == 2
