# SPDX-License-Identifier: Apache-2.0
"""Whatever is drafted, the tokens are those of plain greedy decoding; a fault in the loop is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.speculation.draft_model import DraftModel
from reference_engine.speculation.drafter import Drafter, Round, SpeculationError, Stateless, TargetBatch
from reference_engine.speculation.ngram_cache import NgramCache
from reference_engine.speculation.ngram_map import NgramMap
from reference_engine.speculation.ngram_map_compat import NgramMapCompat
from reference_engine.speculation.ngram_mod import NgramMod
from reference_engine.speculation.ngram_simple import NgramSimple
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.verify import Rows, accepted, chosen, generate, known, tokens_sha256
from tests.speculation.scripted_model import ScriptedModel

SMALL: dict[str, Callable[[], Drafter]] = {
    "ngram-simple": lambda: NgramSimple(2, 6),
    "ngram-simple compat": lambda: NgramSimple(2, 6, compat=True),
    "ngram-map-k": lambda: NgramMap(2, 6),
    "ngram-map-k compat": lambda: NgramMapCompat(2, 6),
    "ngram-map-k4v": lambda: NgramMap(2, 4, only_keys=False),
    "ngram-map-k4v compat": lambda: NgramMapCompat(2, 4, only_keys=False),
    "ngram-mod": lambda: NgramMod(3, 1, 8),
    "ngram-mod compat": lambda: NgramMod(3, 1, 8, compat=True),
    "ngram-cache": NgramCache,
    "ngram-cache compat": lambda: NgramCache(compat=True),
    "draft-simple right": lambda: DraftModel(ScriptedModel()),
    "draft-simple half right": lambda: DraftModel(ScriptedModel(wrong=50), n_max=5),
    "draft-simple never right": lambda: DraftModel(ScriptedModel(salt="other"), n_max=4),
}


class Random(Stateless):
    """Drafts of any length, right or wrong."""

    name = "draft-mtp"

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)

    def draft(self, now: Round) -> list[int]:
        return [int(token) for token in self.random.integers(0, 7, self.random.integers(0, 9))]


@pytest.mark.parametrize("name", SMALL)
@settings(max_examples=25, deadline=None)
@given(
    prompt=st.lists(st.integers(0, 6), min_size=1, max_size=40),
    order=st.integers(1, 4),
    n_predict=st.integers(1, 120),
    eog=st.sets(st.integers(0, 6), max_size=1),
)
def test_every_strategy_gives_the_tokens_of_greedy(
    name: str, prompt: list[int], order: int, n_predict: int, eog: set[int]
) -> None:
    plain = generate(ScriptedModel(order=order), None, prompt, n_predict=n_predict, eog=eog)
    stack = Stack([SMALL[name]()])
    target = ScriptedModel(order=order)
    run = generate(target, stack, prompt, n_predict=n_predict, eog=eog)
    assert run.tokens == plain.tokens
    assert run.sha256 == plain.sha256
    assert run.stopped_by == plain.stopped_by
    assert target.held == [*prompt, *plain.tokens[:-1]]
    assert len(run.steps) + stack.statistics[0].n_acc_tokens == len(plain.steps)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32), n_ctx=st.integers(12, 60))
def test_drafts_of_any_length_fit_the_context(seed: int, n_ctx: int) -> None:
    prompt = [1, 2, 3, 4]
    plain = generate(ScriptedModel(n_ctx=n_ctx), None, prompt, n_predict=100)
    run = generate(ScriptedModel(n_ctx=n_ctx), Stack([Random(seed)]), prompt, n_predict=100)
    assert run.tokens == plain.tokens
    assert run.stopped_by == plain.stopped_by == "context"


def test_strategies_of_a_second_request_do_not_remember_the_first_one_wrongly() -> None:
    for name, make in SMALL.items():
        stack = Stack([make()])
        target = ScriptedModel(order=2)
        for prompt in ([1, 2, 3] * 20, [5, 4], [2, 2, 2, 2, 2, 2, 2, 2]):
            plain = generate(ScriptedModel(order=2), None, prompt, n_predict=60)
            assert generate(target, stack, prompt, n_predict=60).tokens == plain.tokens, name


def test_a_stack_asks_in_llama_cpps_order_and_the_first_draft_wins() -> None:
    stack = Stack([DraftModel(ScriptedModel()), NgramCache(), NgramSimple(2, 6)])
    assert stack.name == "ngram-simple,ngram-cache,draft-simple"
    run = generate(ScriptedModel(order=2), stack, [1, 2, 3, 4, 5], n_predict=80)
    plain = generate(ScriptedModel(order=2), None, [1, 2, 3, 4, 5], n_predict=80)
    assert run.tokens == plain.tokens
    simple, cache, model = stack.statistics
    # The last pass has room for one token only: nobody is asked.
    assert len(run.steps) - 1 <= simple.n_call_draft <= len(run.steps)
    assert cache.n_call_draft == simple.n_call_draft - simple.n_gen_drafts
    assert model.n_call_draft == cache.n_call_draft - cache.n_gen_drafts
    with pytest.raises(SpeculationError, match="named twice"):
        Stack([NgramSimple(), NgramSimple()])


def test_a_right_draft_saves_passes_and_a_wrong_one_none() -> None:
    target = ScriptedModel(n_vocab=50, order=5, n_ctx=900)
    right = generate(target, Stack([DraftModel(ScriptedModel(50, 5, 900))]), [3, 1, 4], n_predict=200)
    assert right.passes_per_token == pytest.approx(0.25)
    target = ScriptedModel(n_vocab=50, order=5, n_ctx=900)
    wrong = generate(target, Stack([DraftModel(ScriptedModel(50, 5, 900, salt="x"))]), [3, 1, 4], n_predict=200)
    assert wrong.passes_per_token > 0.9


class Faulty(ScriptedModel):
    """A cache that keeps what it was told to forget, one token of it, from the second time on."""

    def truncate(self, n_past: int) -> None:
        if 0 < n_past < len(self.held):
            n_past += 1
        super().truncate(n_past)

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        del first  # what the cache holds is where a pass begins, whatever was asked
        return super().forward(tokens, len(self.held))


def test_a_lost_rollback_is_seen() -> None:
    plain = generate(ScriptedModel(), None, [1, 2, 3], n_predict=60)
    run = generate(Faulty(), Stack([Random(1)]), [1, 2, 3], n_predict=60)
    assert run.tokens != plain.tokens


def test_a_token_too_many_taken_for_right_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def generous(logits: object, draft: Sequence[int], eog: object) -> list[int]:
        tokens = accepted(logits, draft, ())  # type: ignore[arg-type]
        return [*tokens[:-1], draft[len(tokens) - 1], 0] if len(tokens) <= len(draft) else tokens

    plain = generate(ScriptedModel(), None, [1, 2, 3], n_predict=60)
    monkeypatch.setattr("reference_engine.speculation.verify.accepted", generous)
    assert generate(ScriptedModel(), Stack([Random(1)]), [1, 2, 3], n_predict=60).tokens != plain.tokens


@settings(max_examples=100, deadline=None)
@given(
    truth=st.lists(st.integers(0, 4), min_size=1, max_size=9),
    draft=st.lists(st.integers(0, 4), max_size=8),
    eog=st.sets(st.integers(0, 4), max_size=2),
)
def test_acceptance_is_the_common_prefix_and_one_more(truth: list[int], draft: list[int], eog: set[int]) -> None:
    truth = (truth * 9)[: len(draft) + 1]
    got = accepted(np.eye(5, dtype=np.float32)[truth], draft, eog)
    same = 0
    while same < len(draft) and draft[same] == truth[same] and truth[same] not in eog:
        same += 1
    assert got == truth[: same + 1]


def test_the_lowest_of_equal_logits_is_chosen_and_hashes_are_of_int32() -> None:
    assert chosen(np.array([0, 3, 3, 1], dtype=np.float32)) == 1
    assert tokens_sha256([1, 2]) == "34fb5c825de7ca4aea6e712f19d439c1da0c92c37b423936c5f618545ca4fa1f"


def test_prompts_that_cannot_be_decoded_are_refused() -> None:
    with pytest.raises(SpeculationError, match="empty prompt"):
        generate(ScriptedModel(), None, [], n_predict=1)
    with pytest.raises(SpeculationError, match="no room is left"):
        generate(ScriptedModel(n_ctx=4), None, [1, 2, 3, 4], n_predict=1)


def test_a_draft_model_below_p_min_drafts_nothing() -> None:
    class Flat(ScriptedModel):
        def forward(self, tokens: Sequence[int], first: int) -> Rows:
            rows = super().forward(tokens, first)
            return Rows(rows.logits * np.float32(0.5))

    drafter = DraftModel(Flat(), p_min=0.9)
    drafter.process(TargetBatch([1, 2], 0, None))
    assert drafter.draft(Round([1, 2], 3, 10)) == []


def test_a_draft_ends_before_a_token_that_the_target_does_not_have() -> None:
    """llama.cpp takes a draft whose vocabulary has up to 128 tokens more."""
    assert known([3, 6, 7, 2], 7) == [3, 6]
    assert known([3, 6], 7) == [3, 6]

    class Larger(Random):
        def draft(self, now: Round) -> list[int]:
            return [token + (token > 4) * 100 for token in super().draft(now)]

    plain = generate(ScriptedModel(), None, [1, 2, 3], n_predict=60)
    run = generate(ScriptedModel(), Stack([Larger(1)]), [1, 2, 3], n_predict=60)
    assert run.tokens == plain.tokens
    assert all(token < 7 for step in run.steps for token in step.draft)
