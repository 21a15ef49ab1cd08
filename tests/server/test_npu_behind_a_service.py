# SPDX-License-Identifier: Apache-2.0
"""Whether the NPU behind a service works, by prefill beside the CPU alone."""

from __future__ import annotations

from tests.server.asked import failed, outcome, passed
from tests.server.fake_server import serving

CHECK = "npu_is_used_in_prefill"


def test_a_prefill_far_above_the_cpus_is_the_npu() -> None:
    with serving(prefill_tps=38.0, decode_tps=2.35) as on, serving(prefill_tps=12.0, decode_tps=2.2) as off:
        said = passed(outcome(CHECK, on.url, off.url))
    assert said.startswith("NPU used")
    assert "decode" in said


def test_the_cpus_prefill_is_caught_though_decode_is_faster() -> None:
    with serving(prefill_tps=12.0, decode_tps=2.6) as on, serving(prefill_tps=12.0, decode_tps=2.2) as off:
        assert "NPU not used" in failed(outcome(CHECK, on.url, off.url))


def test_what_clocks_can_do_is_not_decided() -> None:
    with serving(prefill_tps=15.0) as on, serving(prefill_tps=12.0) as off:
        told = outcome(CHECK, on.url, off.url)
    assert told["verdict"] == "unsupported"
    assert "cannot be told" in told["reason"]


def test_every_prompt_is_fresh() -> None:
    with serving(prefill_tps=38.0) as on, serving() as off:
        outcome(CHECK, on.url, off.url)
        prompts = [body["prompt"] for body in on.requests]
    assert len(set(prompts)) == len(prompts) == 4


def test_what_is_missing_is_said_and_no_pass() -> None:
    with serving() as on, serving(forget=("timings",)) as silent, serving(draft=(4, 2)) as drafts:
        alone = outcome(CHECK, on.url)
        untimed = outcome(CHECK, on.url, silent.url)
        other = outcome(CHECK, drafts.url, on.url)
    assert {told["verdict"] for told in (alone, untimed, other)} == {"unsupported"}
    assert "--server-off" in alone["reason"]
    assert "no timings" in untimed["reason"]
    assert "speculates" in other["reason"]


def test_timings_of_another_prompt_are_caught() -> None:
    with serving(timings={"prompt_n": 3}) as on, serving() as off:
        assert "not of this prompt" in failed(outcome(CHECK, on.url, off.url))
