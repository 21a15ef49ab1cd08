# SPDX-License-Identifier: Apache-2.0
"""Levers: the campaign's own rows give the campaign's verdicts, and nothing is decided where nothing was measured."""

from __future__ import annotations

from typing import Any

import pytest

from reference_engine.gguf_file import GgufFile
from reports.forecast.board import Board
from reports.forecast.document import Asked, case_of
from reports.forecast.quantity import Quantity, exact, unknown
from reports.levers.bench_levers import cpu_or_npu, kv_and_flash, threads
from reports.levers.cpu_levers import pipelining
from reports.levers.document import levers, render, verdicts
from reports.levers.model_levers import levers_of_model, ranked
from reports.levers.verdict import CLOSED, COSTS, LEVEL, PAYS, SPEED_ONLY, UNMEASURED, Verdict, judged
from tests.forecast import campaign_rows as campaign
from tests.forecast import made_reports as made


def by_name(found: list[Verdict]) -> dict[str, Verdict]:
    return {verdict.lever: verdict for verdict in found}


def gain(verdict: Verdict) -> float:
    assert verdict.gain is not None and verdict.gain.value is not None
    return verdict.gain.value


def test_flash_attention_and_cache_types_come_out_as_the_campaign_found_them() -> None:
    found = by_name(kv_and_flash(campaign.KV))
    flash = "cache f16/f16, flash attention, depth "
    assert [found[flash + depth].verdict for depth in ("0", "8192", "16384")] == [LEVEL, COSTS, COSTS]
    assert gain(found[flash + "8192"]) == pytest.approx(0.79, abs=0.01)
    assert gain(found[flash + "16384"]) == pytest.approx(0.75, abs=0.01)
    eight = [found[f"cache q8_0/q8_0, flash attention, depth {depth}"] for depth in (8192, 16384)]
    assert [verdict.verdict for verdict in eight] == [COSTS, COSTS]
    four = found["cache q4_0/q4_0, flash attention, depth 16384"]
    assert (four.verdict, round(gain(four), 2)) == (PAYS, 1.08)
    assert found["cache q4_0/q4_0, flash attention, depth 8192"].verdict == LEVEL


def test_pinned_cores_beat_the_scheduler_and_the_npu_build_beats_the_cpu_build() -> None:
    found = threads(campaign.PINNING)
    assert {verdict.lever for verdict in found} == {
        "4 threads on mask 0xf0 for pp512",
        "4 threads on mask 0xf0 for tg128",
    }
    pair = [each for each in campaign.PINNING if each.cpu_mask in ("0xf0", "0x0")]
    assert [round(gain(verdict), 3) for verdict in threads(pair)] == [1.189, 1.128]
    builds = by_name(cpu_or_npu(campaign.BUILDS))
    assert gain(builds["NPU build for pp512"]) == pytest.approx(3.08, abs=0.01)
    assert gain(builds["NPU build for tg128"]) == pytest.approx(1.07, abs=0.01)


def test_every_lever_without_its_measurement_says_so_and_names_it() -> None:
    found = verdicts(Board(made.report([])), [])
    assert len(found) >= 14
    for verdict in found:
        assert verdict.verdict == UNMEASURED
        assert verdict.decided_by
        assert verdict.gain is None
    assert "Not measured" in render(levers(made.report([]), []))


def test_every_decided_lever_names_its_measurements() -> None:
    for verdict in verdicts(Board(made.report()), [*campaign.KV, *campaign.BUILDS]):
        assert verdict.decided_by
        assert verdict.why


def test_the_made_board_is_judged_by_the_numbers_it_was_made_of() -> None:
    found = by_name(verdicts(Board(made.report()), []))
    assert gain(found["pinning to the fastest CPUs"]) == pytest.approx(80 / 60)
    assert gain(found["3 NPU cores, M = 1"]) == pytest.approx(2.4)
    assert gain(found["3 NPU cores, large M"]) == pytest.approx(2.7)
    assert gain(found["K split"]) == pytest.approx(14.0)
    assert found["int4 (W4A4), decode"].verdict == SPEED_ONLY
    assert gain(found["int4 (W4A4), decode"]) == pytest.approx(2.0, rel=0.05)
    big = made.STREAM + 512 * made.MAC
    small = made.STREAM + 384 * made.MAC
    steps = (made.FIXED + 4096**2 * big) / (made.FIXED + 4096**2 * small)
    assert gain(found["M in steps of 128 for powers of two"]) == pytest.approx(steps, rel=0.01)


def supported(kind: int, verdict: str) -> made.Row:
    each = made.row("dtype_support", "verdict", 1.0, type=kind)
    return {**each, "verdict": verdict, "median": None}


def test_weight_only_types_are_closed_where_all_were_refused_and_open_where_one_is_right() -> None:
    lever = "int4 weights under wider activations"
    refused = [supported(kind, "unsupported") for kind in (5, 7, 8, 11, 12)]
    assert by_name(verdicts(Board(made.report(refused)), []))[lever].verdict == CLOSED
    opened = [*refused[:2], supported(7, "passed")]
    assert by_name(verdicts(Board(made.report(opened)), []))[lever].verdict == PAYS
    crashed = [supported(11, "crashed")]
    assert by_name(verdicts(Board(made.report(crashed)), []))[lever].verdict == UNMEASURED


@pytest.mark.parametrize(
    ("cpu", "npu", "share", "expected"),
    [
        (1.0, 1.0, 0.2, 1 / 0.8),  # nothing is taken: all of the CPU's time is hidden
        (0.7, 0.3, 0.2, 1.0),  # the bus is full: flat, as the campaign found it
        (0.5, 0.2, 0.2, 1 / 1.12),  # they take more than they give
        (1.0, 1.0, 0.8, 1 / 0.8),  # no more than the NPU has time for
    ],
)
def test_pipelining_gains_what_contention_leaves(cpu: float, npu: float, share: float, expected: float) -> None:
    rows = [
        made.row("contention", "share", cpu, of="cpu_read", beside="npu_stream"),
        made.row("contention", "share", npu, of="npu_stream", beside="cpu_read"),
    ]
    (verdict,) = pipelining(Board(made.report(rows)), exact(share))
    assert gain(verdict) == pytest.approx(expected)


def test_a_difference_counts_only_where_the_whole_interval_is_on_one_side() -> None:
    for quantity, word in (
        (Quantity(1.2, 1.1, 1.3), PAYS),
        (Quantity(1.2, 0.9, 1.5), LEVEL),
        (Quantity(0.8, 0.7, 0.9), COSTS),
        (Quantity(1.01, 1.005, 1.015), LEVEL),
        (unknown("row"), UNMEASURED),
    ):
        assert judged("x", quantity, "because").verdict == word


def test_reuse_of_activations_is_limited_by_what_shares_a_call(small: GgufFile) -> None:
    share, found = levers_of_model(case_of(made.report(), small, Asked()))
    reuse = by_name(found)
    within, without = reuse["activation reuse within a call"], reuse["activation reuse without graph splits"]
    assert 1 <= gain(within) < gain(without) < 1.2
    assert any("graph splits" in each for each in within.decided_by)
    assert share is not None and share.value is not None and 0 < share.value < 1


def test_the_forecast_ranks_levers_by_gain_and_leaves_the_undecided_out(small: GgufFile) -> None:
    found = ranked(case_of(made.report(), small, Asked()))
    assert found[0].verdict == PAYS
    assert all(verdict.verdict != UNMEASURED for verdict in found)
    paying = [gain(verdict) for verdict in found if verdict.verdict == PAYS]
    assert paying == sorted(paying, reverse=True)
    assert {"3 NPU cores for one", "int4 (W4A4) for int8", "M not padded"} <= {verdict.lever for verdict in found}


def test_the_page_shows_a_strangers_words_inert() -> None:
    hostile = [campaign.row(3.0, n_gen=128, cpu_mask="\x1b[31m", model="m"), campaign.row(2.0, n_gen=128, model="m")]
    text = render(levers({**made.report(), "simulated": True}, hostile))
    assert "\x1b" not in text
    assert text.count("SIMULATED") == 2


def test_the_document_is_sorted_and_says_what_decided(small: GgufFile) -> None:
    document: Any = levers(made.report(), campaign.BUILDS)
    words = [row["verdict"] for row in document["levers"]]
    assert words == sorted(words, key=[PAYS, SPEED_ONLY, LEVEL, COSTS, CLOSED, UNMEASURED].index)
    assert all(row["decided_by"] for row in document["levers"])
