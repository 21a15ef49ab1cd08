# SPDX-License-Identifier: Apache-2.0
"""Greedy repeatability over HTTP: what a right service passes, and each way to be wrong, by name."""

from __future__ import annotations

from tests.server.asked import failed, outcome, passed
from tests.server.fake_server import serving

REPEATS, MOST_LIKELY = "greedy_is_repeatable", "greedy_takes_the_most_likely"


def test_a_right_service_repeats_itself() -> None:
    with serving() as server:
        assert "the same token ids" in passed(outcome(REPEATS, server.url))


def test_every_request_is_greedy_and_keeps_nothing_of_an_earlier_prompt() -> None:
    with serving() as server:
        outcome(REPEATS, server.url)
        assert server.requests
        for body in server.requests:
            assert body["temperature"] == 0
            assert body["cache_prompt"] is False
            assert body["repeat_penalty"] == 1.0


def test_a_service_that_answers_differently_is_caught() -> None:
    with serving(wobble=(3,)) as server:
        reason = failed(outcome(REPEATS, server.url))
    assert "not repeatable" in reason
    assert "token 3" in reason


def test_a_tie_between_batch_shapes_of_drafts_is_no_fault_on_quantised_weights() -> None:
    with serving(wobble=(3,), gap=0.05, draft=(4, 2), spec_types="ngram-mod") as server:
        told = outcome(REPEATS, server.url)
    assert "near tie" in passed(told)
    assert told["known"]


def test_the_same_tie_is_a_fault_on_f32_weights() -> None:
    with serving(wobble=(3,), gap=0.05, draft=(4, 2), spec_types="ngram-mod", ftype="all F32") as server:
        assert "not repeatable" in failed(outcome(REPEATS, server.url))


def test_a_margin_that_no_batch_shape_turns_is_a_fault_with_drafts_too() -> None:
    with serving(wobble=(3,), gap=5.0, draft=(4, 2), spec_types="ngram-mod") as server:
        assert "ruled out" in failed(outcome(REPEATS, server.url))


def test_a_service_that_takes_the_second_choice_is_caught() -> None:
    with serving(flip_at=7) as server:
        reason = failed(outcome(MOST_LIKELY, server.url))
    assert "token 7 is not the most likely" in reason


def test_tokens_on_top_of_their_rows_pass() -> None:
    with serving() as server:
        assert "each on top of its row" in passed(outcome(MOST_LIKELY, server.url))


def test_no_log_probabilities_is_not_served_and_no_pass() -> None:
    with serving(probs=False) as server:
        told = outcome(MOST_LIKELY, server.url)
    assert told["verdict"] == "unsupported"


def test_texts_are_compared_where_no_ids_are_given() -> None:
    with serving(completion=False, openai="lists") as server:
        assert "no token ids" in passed(outcome(REPEATS, server.url))
    with serving(completion=False, openai="lists", wobble=(3,)) as server:
        assert "not repeatable" in failed(outcome(REPEATS, server.url))


def test_a_service_that_generates_nothing_is_caught() -> None:
    with serving(raw={"/completion": b'{"content": "", "tokens": []}'}) as server:
        assert "nothing is generated" in failed(outcome(REPEATS, server.url))


def test_a_service_that_ends_at_once_is_not_judged_by_one_token() -> None:
    with serving(raw={"/completion": b'{"content": "a", "tokens": [97]}'}) as server:
        told = outcome(REPEATS, server.url)
    assert told["verdict"] == "unsupported"
    assert "generates 1" in told["reason"]


def test_a_context_too_small_for_a_prompt_is_no_fault() -> None:
    with serving(n_ctx=256) as server:
        told = outcome(REPEATS, server.url)
    assert told["verdict"] == "unsupported"
    assert "context of 256 tokens" in told["reason"]
