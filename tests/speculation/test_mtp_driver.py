# SPDX-License-Identifier: Apache-2.0
"""The driver of prediction heads: which hidden state, which position, which memory, in each of the three kinds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from reference_engine.speculation.drafter import Round, SpeculationError, TargetBatch
from reference_engine.speculation.mtp import Mtp
from reference_engine.speculation.stack import Stack
from reference_engine.speculation.verify import generate
from tests.speculation.scripted_model import ScriptedModel

F32 = NDArray[np.float32]
VOCAB = 7


class WithHidden(ScriptedModel):
    """The hidden state of a position is a number that nothing else has: 100 times the position, plus the token."""

    def hidden(self, n: int) -> F32:
        first = len(self.held) - n
        return np.array([[100 * (first + i) + self.held[first + i]] for i in range(n)], dtype=np.float32)


class Head:
    """Right guesses from a scripted target; checks everything it is given and remembers what it was fed."""

    n_embd = 1

    def __init__(self, *, shared: bool, heads: int = 1, text: list[int] | None = None) -> None:
        self.shared_memory, self.n_heads = shared, heads
        self.target = text
        self.rows: list[dict[int, tuple[int, float]]] = [{} for _ in range(heads)]
        self.calls: list[tuple[list[int], list[float], int, int]] = []
        self.script = ScriptedModel()

    def decode(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> tuple[F32, F32]:
        assert hidden.shape == (len(tokens), 1)
        self.calls.append((list(tokens), [float(h) for h in hidden[:, 0]], first, head))
        if not self.shared_memory:
            own = self.rows[head]
            for position in [p for p in own if p >= first]:
                del own[position]
            assert sorted(own) == list(range(first)), "a pass must begin where the head's memory ends"
            own.update({first + i: (t, float(h)) for i, (t, h) in enumerate(zip(tokens, hidden[:, 0], strict=True))})
        logits = np.zeros(VOCAB, dtype=np.float32)
        logits[(tokens[-1] * 3 + 1) % VOCAB] = 1.0
        return logits, np.full((len(tokens), 1), -1.0 - len(self.calls), dtype=np.float32)

    def fill(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> None:
        self.decode(tokens, hidden, first, head=head)

    def truncate(self, n_past: int) -> None:
        for own in self.rows:
            for position in [p for p in own if p >= n_past]:
                del own[position]


PROMPT = [1, 4, 2, 6]


@pytest.mark.parametrize("kind", ["shared", "single", "chained"])
def test_generation_with_a_head_is_lossless(kind: str) -> None:
    plain = generate(WithHidden(), None, PROMPT, n_predict=60)
    head = Head(shared=kind == "shared", heads=2 if kind == "chained" else 1)
    run = generate(WithHidden(), Stack([Mtp(head, n_max=3)]), PROMPT, n_predict=60)
    assert run.tokens == plain.tokens
    assert len(run.steps) < len(plain.steps)


def test_shared_memory_drafts_at_one_position_from_the_state_before_the_last_token() -> None:
    head = Head(shared=True)
    mtp = Mtp(head, n_max=3)
    mtp.process(TargetBatch(PROMPT[:-1], 0, np.array([[1], [2], [3]], dtype=np.float32)))
    mtp.begin(PROMPT[:-1])
    draft = mtp.draft(Round(PROMPT[:-1], PROMPT[-1], 10))
    assert len(draft) == 3
    assert [call[2] for call in head.calls] == [3, 3, 3]
    assert [call[0] for call in head.calls] == [[PROMPT[-1]], draft[:1], draft[1:2]]
    assert [call[1] for call in head.calls] == [[3.0], [-2.0], [-3.0]]


def test_a_single_head_is_caught_up_with_each_token_and_the_state_before_it() -> None:
    target = WithHidden()
    head = Head(shared=False)
    generate(target, Stack([Mtp(head, n_max=3)]), PROMPT, n_predict=30)
    for position, (token, state) in head.rows[0].items():
        before = 0.0 if position == 0 else 100.0 * (position - 1) + target.held[position - 1]
        if position < len(target.held):
            assert token == target.held[position]
            assert state == before, position


def test_chained_heads_draft_no_more_tokens_than_heads_and_begin_anew_for_each() -> None:
    head = Head(shared=False, heads=2)
    mtp = Mtp(head, n_max=5)
    assert mtp.n_max == 2
    mtp.process(TargetBatch(PROMPT[:-1], 0, np.array([[1], [2], [3]], dtype=np.float32)))
    assert [(call[0], call[3]) for call in head.calls] == [(PROMPT[:-1], 0), (PROMPT[:-1], 1)]
    head.calls.clear()
    draft = mtp.draft(Round(PROMPT[:-1], PROMPT[-1], 10))
    assert [(call[0], call[2], call[3]) for call in head.calls] == [([6], 3, 0), ([6, draft[0]], 3, 1)]
    assert head.calls[1][1] == [3.0, -2.0]


@pytest.mark.parametrize("accepted", [0, 1, 2, 3])
def test_the_next_draft_begins_with_the_state_of_the_last_accepted_token(accepted: int) -> None:
    head = Head(shared=True)
    mtp = Mtp(head)
    mtp.process(TargetBatch([1, 2], 0, np.zeros((2, 1), dtype=np.float32)))
    mtp.process(TargetBatch([3, 4, 5, 6], 2, np.array([[10], [11], [12], [13]], dtype=np.float32)))
    mtp.accept(accepted, 3 + accepted, own=True)
    mtp.draft(Round([0] * (3 + accepted), 5, 1))
    assert head.calls[-1][1] == [10.0 + accepted]


def test_a_new_request_begins_with_zeros_unless_llama_cpp_is_followed() -> None:
    for compat, state in ((False, 0.0), (True, 7.0)):
        head = Head(shared=False)
        mtp = Mtp(head, compat=compat)
        mtp.process(TargetBatch([1, 2], 0, np.array([[5], [7]], dtype=np.float32)))
        head.calls.clear()
        mtp.process(TargetBatch([3, 4], 0, np.array([[8], [9]], dtype=np.float32)))
        assert head.calls[0][1] == [state, 8.0]


def test_a_target_without_hidden_state_is_refused() -> None:
    mtp = Mtp(Head(shared=True))
    with pytest.raises(SpeculationError, match=r"needs the target's hidden state \[2, 1\] and got None"):
        mtp.process(TargetBatch([1, 2], 0, None))
    with pytest.raises(SpeculationError, match=r"and got \[2, 3\]"):
        mtp.process(TargetBatch([1, 2], 0, np.zeros((2, 3), dtype=np.float32)))


def test_drafts_below_p_min_or_n_min_are_dropped() -> None:
    mtp = Mtp(Head(shared=True), p_min=0.9)
    mtp.process(TargetBatch([1], 0, np.zeros((1, 1), dtype=np.float32)))
    assert mtp.draft(Round([1], 2, 10)) == []
    mtp = Mtp(Head(shared=True), n_max=2, n_min=3)
    mtp.process(TargetBatch([1], 0, np.zeros((1, 1), dtype=np.float32)))
    assert mtp.draft(Round([1], 2, 10)) == []
