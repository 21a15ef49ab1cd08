# SPDX-License-Identifier: Apache-2.0
"""Generation: what ends it, what is shown of it, and what is left when it is interrupted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.errors import ContextFull, UsageError
from reference_engine.generate import CONTEXT, END, INTERRUPTED, LENGTH, STOP_TEXT, StopTexts, generate
from reference_engine.sampling import greedy
from reference_engine.session import Session
from tests.engine.conftest import Load
from tests.gguf.random_models import Recipe

PROMPT = [10, 20, 30]


class Letters:
    """Token n is the n-th letter."""

    def feed(self, token: int) -> str:
        return chr(97 + token)

    def finish(self) -> str:
        return ""


def countdown(*tokens: int) -> Any:
    """A sampler that gives these tokens whatever the logits are."""
    left = list(tokens)
    return lambda _: left.pop(0)


@given(
    st.lists(st.text("abc", max_size=4), max_size=12),
    st.lists(st.text("abc", min_size=1, max_size=4), max_size=3),
)
@settings(max_examples=120, deadline=None)
def test_what_is_shown_is_the_text_before_the_first_stop(pieces: list[str], stops: list[str]) -> None:
    shown: list[str] = []
    filter_ = StopTexts(stops, shown.append)
    whole, stopped = "", False
    for piece in pieces:
        whole += piece
        stopped = filter_.feed(piece)
        # Nothing that is shown is ever taken back, and no stop text is ever begun.
        assert whole.startswith("".join(shown))
        if stopped:
            break
    if not stopped:
        filter_.finish()
    ends = [at for at in (whole.find(stop) for stop in stops) if at >= 0]
    assert stopped == bool(ends)
    assert "".join(shown) == (whole[: min(ends)] if ends else whole)


def test_text_that_begins_no_stop_is_shown_at_once() -> None:
    shown: list[str] = []
    filter_ = StopTexts(["STOP"], shown.append)
    filter_.feed("hello S")
    assert shown == ["hello "]
    filter_.feed("unny")
    assert "".join(shown) == "hello Sunny"


def test_an_empty_stop_text_is_refused() -> None:
    with pytest.raises(UsageError, match="empty"):
        StopTexts(["a", ""], print)


def test_greedy_generation_is_argmax_after_argmax(load: Load) -> None:
    model = load(Recipe("llama", frozenset({"untied"})))
    summary = generate(Session(model), PROMPT, greedy, limit=6)
    known = list(PROMPT)
    for _ in range(6):
        logits = model.forward(known, model.new_cache()).logits[-1]
        known.append(int(np.argmax(logits)))
    assert summary.tokens == known[3:]
    assert len(set(summary.tokens)) > 2  # a model that repeats itself would hide a step left out
    assert summary.stop == LENGTH
    assert (summary.prompt_tokens, summary.decoded) == (3, 5)
    assert summary.prefill_per_s is not None
    assert summary.decode_per_s is not None


def test_a_token_that_ends_the_text_is_not_shown(load: Load) -> None:
    session = Session(load(Recipe("llama")))
    shown: list[str] = []
    summary = generate(session, PROMPT, countdown(0, 1, 7, 2), limit=9, ends={7}, text=Letters(), emit=shown.append)
    assert summary.stop == END
    assert summary.tokens == [0, 1]
    assert "".join(shown) == "ab"
    assert session.tokens == [*PROMPT, 0, 1]


def test_a_stop_text_ends_generation_before_it(load: Load) -> None:
    shown: list[str] = []
    summary = generate(
        Session(load(Recipe("llama"))),
        PROMPT,
        countdown(0, 1, 2, 3, 4),
        limit=9,
        stops=["cd"],
        text=Letters(),
        emit=shown.append,
    )
    assert summary.stop == STOP_TEXT
    assert "".join(shown) == "ab"


def test_a_full_context_ends_generation_with_its_last_token(load: Load) -> None:
    session = Session(load(Recipe("llama"), n_ctx=6))
    summary = generate(session, PROMPT, greedy, limit=-1)
    assert summary.stop == CONTEXT
    # Three positions behind the prompt, and the token that the last of them predicts.
    assert len(summary.tokens) == 4
    assert session.room == 0
    with pytest.raises(ContextFull):
        session.feed([1])


def test_a_prompt_that_does_not_fit_is_refused(load: Load) -> None:
    with pytest.raises(ContextFull, match="0 of 2 positions are taken and 3 more"):
        generate(Session(load(Recipe("llama"), n_ctx=2)), PROMPT, greedy, limit=1)


@pytest.mark.parametrize("after", [0, 2])
def test_an_interrupt_leaves_a_summary_and_a_session_that_goes_on(after: int, load: Load) -> None:
    model = load(Recipe("llama"))
    session = Session(model)
    forward = model.forward
    shown: list[str] = []
    calls: list[int] = []

    def interrupted(*arguments: Any, **options: Any) -> Any:
        calls.append(1)
        if len(calls) > after:
            raise KeyboardInterrupt
        return forward(*arguments, **options)

    model.forward = interrupted  # type: ignore[method-assign]
    summary = generate(session, PROMPT, countdown(0, 1, 2), limit=3, text=Letters(), emit=shown.append)
    assert summary.stop == INTERRUPTED
    assert "".join(shown) == ("" if after == 0 else "ab")
    assert summary.prefill_per_s is None if after == 0 else summary.prefill_per_s is not None
    model.forward = forward  # type: ignore[method-assign]
    assert session.tokens == ([] if after == 0 else [*PROMPT, 0])
    rest = PROMPT if after == 0 else [1]
    expected = model.forward([*session.tokens, *rest], model.new_cache()).logits[-1]
    assert np.array_equal(session.feed(rest), expected)


def test_a_session_cut_back_goes_on_as_if_it_had_not_gone_on(load: Load) -> None:
    session = Session(load(Recipe("qwen3")))
    session.feed([1, 2, 3])
    expected = session.feed([4]).copy()
    session.truncate(1)
    assert session.tokens == [1]
    session.feed([2, 3])
    assert np.array_equal(session.feed([4]), expected)
