# SPDX-License-Identifier: Apache-2.0
"""Speculation on against off: identity, classes of a difference, acceptance, speed, and what cannot be compared."""

from __future__ import annotations

import pytest

from tests.server.asked import failed, outcome, passed
from tests.server.fake_server import serving

CHECK = "speculation_changes_nothing"
ON = {"spec_types": "ngram-mod", "draft": (10, 6)}


def test_the_same_tokens_pass_with_acceptance_and_speed() -> None:
    with serving(**ON, decode_tps=40.0) as on, serving() as off:
        said = passed(outcome(CHECK, on.url, off.url))
    assert "4 of 4 fresh prompts" in said
    assert "24 of 40 drafted tokens accepted (0.60)" in said
    assert "quantised weights" in said
    ratio = float(said.rsplit("; ", 1)[1].split(" times")[0])
    assert 1.9 < ratio < 2.1


def test_each_prompt_goes_once_to_each_side_in_the_order_a_b_b_a() -> None:
    with serving(**ON) as on, serving() as off:
        passed(outcome(CHECK, on.url, off.url))
        sent = [
            (when, name, body["prompt"])
            for name, server in (("on", on), ("off", off))
            for when, body in zip(server.times, server.requests, strict=True)
        ]
    order = [name for _, name, _ in sorted(sent)]
    assert order == ["off", "on", "on", "off"] * 2
    assert all(body["cache_prompt"] is False for body in (*on.requests, *off.requests))
    assert sorted(body["prompt"] for body in on.requests) == sorted(body["prompt"] for body in off.requests)
    assert len({prompt for _, _, prompt in sent}) == 4


def test_a_near_tie_on_quantised_weights_is_explained_and_no_failure() -> None:
    with serving(**ON, gap=0.48, prefill_gap=0.05, flip_at=6) as on, serving(gap=0.48, prefill_gap=0.05) as off:
        told = outcome(CHECK, on.url, off.url)
    said = passed(told)
    assert "token 6 is" in said
    assert "0.48 nats in the path that decodes one by one" in said
    assert "0.05 nats in the path that reads the prefix at once" in said
    assert "near tie" in said
    assert len(told["known"]) == 4


def test_a_margin_in_between_is_classed_and_no_failure_by_itself() -> None:
    with serving(**ON, gap=1.2, prefill_gap=0.9, flip_at=6) as on, serving(gap=1.2, prefill_gap=0.9) as off:
        assert "within the reach of quantisation" in passed(outcome(CHECK, on.url, off.url))


def test_a_token_that_both_paths_rule_out_is_a_failure() -> None:
    with serving(**ON, gap=5.0, flip_at=6) as on, serving(gap=5.0) as off:
        reason = failed(outcome(CHECK, on.url, off.url))
    assert "rules out" in reason
    assert "5.00 nats" in reason
    assert "rolled back" in reason


def test_a_nat_is_enough_where_the_paths_agree_to_a_hundredth() -> None:
    with serving(**ON, gap=1.2, prefill_gap=1.19, flip_at=6) as on, serving(gap=1.2, prefill_gap=1.19) as off:
        assert "rules out" in failed(outcome(CHECK, on.url, off.url))


def test_a_token_outside_the_ten_most_likely_is_a_failure() -> None:
    with serving(**ON, gap=4.0, flip_at=6, flip_to=9) as on, serving(gap=4.0) as off:
        assert "rules out" in failed(outcome(CHECK, on.url, off.url))


def test_identity_is_demanded_on_f32_weights_with_f32_cache() -> None:
    with serving(**ON, gap=0.05, flip_at=6, ftype="all F32") as on, serving(gap=0.05, ftype="all F32") as off:
        reason = failed(outcome(CHECK, on.url, off.url, server_kv="f32"))
        explained = passed(outcome(CHECK, on.url, off.url))
    assert "on F32 weights" in reason
    assert "near tie" in explained


def test_more_than_a_tie_is_a_failure_on_f32_weights_whatever_the_cache() -> None:
    with serving(**ON, gap=0.9, flip_at=6, ftype="all F32") as on, serving(gap=0.9, ftype="all F32") as off:
        assert "on F32 weights" in failed(outcome(CHECK, on.url, off.url))


def test_a_plain_side_that_does_not_repeat_itself_takes_the_blame() -> None:
    with serving(**ON, flip_at=30) as on, serving(wobble=(1,)) as off:
        assert "speculation is not to blame" in failed(outcome(CHECK, on.url, off.url))


def test_a_difference_without_log_probabilities_is_said_to_be_unclassed() -> None:
    with serving(**ON, flip_at=6, probs=False) as on, serving(probs=False) as off:
        assert "not classed" in passed(outcome(CHECK, on.url, off.url))


def test_no_draft_at_all_is_no_pass() -> None:
    with serving(spec_types="ngram-mod", draft=(0, 0)) as on, serving() as off:
        told = outcome(CHECK, on.url, off.url)
    assert told["verdict"] == "unsupported"
    assert "no draft was made" in told["reason"]


def test_acceptance_comes_from_the_counters_where_the_answers_have_none() -> None:
    with serving(**ON, forget=("draft_n", "draft_n_accepted")) as on, serving() as off:
        assert "24 of 40 drafted tokens accepted" in passed(outcome(CHECK, on.url, off.url))


def test_acceptance_that_nobody_tells_is_said_to_be_unknown() -> None:
    with serving(**ON, forget=("draft_n", "draft_n_accepted"), metrics=False) as on, serving() as off:
        assert "acceptance is told neither" in passed(outcome(CHECK, on.url, off.url))


def test_two_services_of_which_nothing_shows_a_draft_are_no_pass() -> None:
    silent = {"forget": ("timings",), "metrics": False, "status": {"/slots": 404, "/props": 404}}
    with serving(**silent) as on, serving(**silent) as off:
        told = outcome(CHECK, on.url, off.url)
    assert told["verdict"] == "unsupported"
    assert "nothing shows that a draft was made" in told["reason"]


@pytest.mark.parametrize("which", ["with", "without"])
def test_tokens_lost_at_the_end_are_caught(which: str) -> None:
    cut = {which: 1}
    with serving(**ON, cut=cut.get("with", 0)) as on, serving(cut=cut.get("without", 0)) as off:
        reason = failed(outcome(CHECK, on.url, off.url))
    assert "lost or added at the end" in reason
    assert "63" in reason


def test_more_accepted_than_drafted_is_caught() -> None:
    with serving(spec_types="ngram-mod", draft=(5, 9)) as on, serving() as off:
        assert "more than there were" in failed(outcome(CHECK, on.url, off.url))


def test_exchanges_are_timed_where_there_are_no_timings() -> None:
    with serving(**ON, forget=("timings",)) as on, serving(forget=("timings",)) as off:
        assert "time of the whole exchange" in passed(outcome(CHECK, on.url, off.url))


def test_one_service_is_switched_by_request_where_it_can_be() -> None:
    with serving(**ON, switchable=True, gap=0.05, flip_at=9) as on:
        told = outcome(CHECK, on.url)
        quiet = [body for body in on.requests if body.get("speculative.n_max") == 0]
    assert "token 9 is" in passed(told)
    assert len(quiet) >= 4


def test_what_cannot_be_compared_says_what_to_start() -> None:
    with serving(**ON) as on, serving() as off:
        alone = outcome(CHECK, on.url)
        without = outcome(CHECK, off.url, on.url)
        both = outcome(CHECK, on.url, on.url)
    assert alone["verdict"] == without["verdict"] == both["verdict"] == "unsupported"
    assert "--server-off" in alone["reason"]
    assert "--spec-type" in without["reason"]
    assert "speculates too" in both["reason"]


def test_what_props_says_of_speculation_is_believed_only_where_slots_are_silent() -> None:
    # llama.cpp b11434 writes "none" into /props of a service that speculates.
    with serving(spec_types="none", draft=(10, 6)) as on, serving() as off:
        passed(outcome(CHECK, on.url, off.url))
    silent = {"/slots": 404}
    with serving(**ON, status=silent) as on, serving(status=silent) as off:
        passed(outcome(CHECK, on.url, off.url))
        told = outcome(CHECK, off.url, on.url)
    assert told["verdict"] == "unsupported"


def test_two_models_are_not_compared() -> None:
    with serving(**ON) as on, serving(model="other.gguf") as off:
        told = outcome(CHECK, on.url, off.url)
    assert told["verdict"] == "could-not-run"
    assert "have to serve the same model" in told["reason"]
    assert "broke" not in told["reason"]


def test_a_comparison_of_a_few_tokens_is_no_pass() -> None:
    short = {"/completion": b'{"content": "abcd", "tokens": [97, 98, 99, 100], "timings": {"draft_n": 3}}'}
    with (
        serving(**ON, raw=short) as on,
        serving(raw={"/completion": short["/completion"].replace(b"3}", b"0}")}) as off,
    ):
        told = outcome(CHECK, on.url, off.url)
    assert told["verdict"] == "unsupported"
    assert "too few to judge" in told["reason"]
