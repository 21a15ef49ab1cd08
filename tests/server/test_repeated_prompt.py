# SPDX-License-Identifier: Apache-2.0
"""A repeated prompt that is faster than distinct ones is flagged, with what explains it."""

from __future__ import annotations

from tests.server.asked import failed, outcome, passed
from tests.server.fake_server import serving

CHECK = "repeated_prompt_is_not_faster"


def test_a_service_that_keeps_nothing_passes() -> None:
    with serving() as server:
        said = passed(outcome(CHECK, server.url))
        lengths = {len(body["prompt"]) for body in server.requests}
        prompts = [tuple(body["prompt"]) for body in server.requests]
    assert "prefill" in said
    assert "decode" in said
    assert len(lengths) == 1
    assert sorted(prompts.count(prompt) for prompt in set(prompts)) == [1] * 5 + [6]


def test_a_prompt_cache_that_admits_itself_is_caught() -> None:
    with serving(keeps_prompts=True) as server:
        assert "come from a cache" in failed(outcome(CHECK, server.url))


def test_a_prompt_cache_that_keeps_silent_is_caught_by_its_time() -> None:
    with serving(keeps_prompts=True, forget=("cache_n",)) as server:
        reason = failed(outcome(CHECK, server.url))
    assert reason.startswith("prefill")
    assert "a cache answers" in reason


def test_a_faster_decode_without_drafts_is_caught() -> None:
    with serving(repeat_factor=1.5) as server:
        assert "no accepted drafts explain it" in failed(outcome(CHECK, server.url))


def test_drafts_out_of_an_earlier_answer_are_flagged_and_explained() -> None:
    with serving(repeat_factor=3.0, draft=(8, 2), repeat_draft=(24, 24), spec_types="ngram-mod") as server:
        told = outcome(CHECK, server.url)
    assert "n-gram tables live across requests" in passed(told)
    assert "120 drafted tokens accepted against 10" in told["known"][0]


def test_timings_that_scatter_decide_nothing() -> None:
    with serving(spread=1.6) as server:
        told = outcome(CHECK, server.url)
    assert told["verdict"] == "unsupported"
    assert "not decided" in told["reason"]


def test_no_timings_and_no_ids_are_no_pass() -> None:
    with serving(forget=("timings",)) as untimed, serving(tokenizes=False) as texts:
        told = outcome(CHECK, untimed.url), outcome(CHECK, texts.url)
    assert [one["verdict"] for one in told] == ["unsupported"] * 2
