# SPDX-License-Identifier: Apache-2.0
"""The C probes by themselves: help, usage, tables, rows, and figures of the model within loose bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.measure.conftest import RunProbe, bests

PROGRAMS = ("mm_cost", "mm_limits", "mm_masks", "mm_stream", "mm_memory", "mm_grid", "mm_soak")
CAMPAIGN = "campaign"


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_names_the_exit_codes(probe: RunProbe, program: str) -> None:
    run = probe(program, "--help", table=True)
    assert run.code == 0
    assert f"usage: {program}" in run.out
    assert "exit codes: 0" in run.out


@pytest.mark.parametrize(
    ("program", "arguments", "words"),
    [
        ("mm_cost", ["--part", "nonsense"], "does not have"),
        ("mm_cost", ["--shape", "1x2x3"], "is no option"),
        ("mm_memory", ["--most", "0"], "integer from 1"),
        ("mm_stream", ["--cpu-threads", "x"], "integer from 1"),
        ("mm_masks", ["--load-file", ""], "must name a file"),
        ("mm_limits", ["--type", "99"], "type codes 0 to 20"),
        ("mm_soak", ["--seconds", "never"], "number of seconds"),
    ],
)
def test_bad_usage_is_one_sentence_and_exit_2(probe: RunProbe, program: str, arguments: list[str], words: str) -> None:
    run = probe(program, *arguments, table=True)
    assert run.code == 2
    assert words in run.err
    assert run.err.count("\n") == 1


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_library_that_is_not_there_is_one_sentence_and_exit_3(probe: RunProbe, program: str) -> None:
    run = probe(program, "--library", "/nowhere/librknnrt.so", table=True)
    assert run.code == 3
    assert "/nowhere/librknnrt.so" in run.err


def test_every_row_of_cost_is_proven_and_covers_every_part(probe: RunProbe) -> None:
    run = probe("mm_cost", "--quick", "--seconds", "0.1", timing=CAMPAIGN)
    assert run.code == 0
    assert all(row["checked"] == "exact" and row["verdict"] == "passed" for row in run.rows())
    assert run.row("run_cost", part="fixed")["evidence"]["library_share"] >= 0.995
    assert {row["parameters"]["idle_ms"] for row in run.rows("run_cost", part="wake")} == {1, 10, 100}
    times = {row["parameters"]["M"]: min(row["samples"]) for row in run.rows("run_time")}
    assert times[128] > times[64] > times[1]


def test_the_costs_of_the_model_come_back(probe: RunProbe) -> None:
    def figures() -> dict[Any, float]:
        run = probe("mm_cost", "--part", "fixed,bind,life", "--seconds", "0.1", timing=CAMPAIGN)
        rows = {
            "fixed": run.row("run_cost", part="fixed"),
            "create": run.row("run_cost", part="create"),
            "bind": run.row("run_cost", part="bind", B_layout="native"),
        }
        return {name: min(row["samples"]) for name, row in rows.items()}

    best = bests(figures, {"fixed": 33, "create": 150, "bind": 4.9}, min)
    assert best["fixed"] == pytest.approx(33, rel=0.15)
    assert best["create"] == pytest.approx(150, rel=0.15)
    assert best["bind"] == pytest.approx(4.9, rel=0.3)


def test_polling_shows_as_cpu_time_and_sleeping_does_not(probe: RunProbe) -> None:
    """Without the timing model the mock computes all the time, which looks like polling."""
    busy = probe("mm_cost", "--part", "cpu_use", "--seconds", "0.1").row("run_cost", part="cpu_use")
    assert busy["evidence"]["waits_by"] == "polling"
    idle = probe("mm_cost", "--part", "cpu_use", "--seconds", "0.1", timing=CAMPAIGN).row("run_cost", part="cpu_use")
    assert idle["evidence"]["waits_by"] == "sleeping"


def test_streaming_tells_bandwidth_of_one_core_and_of_all(probe: RunProbe) -> None:
    def figures() -> dict[Any, float]:
        timing = "campaign,bw_core_gbps=4,bw_shared_gbps=8"
        run = probe("mm_stream", "--part", "stream", "--seconds", "0.2", timing=timing)
        return {row["parameters"]["contexts"]: max(row["samples"]) for row in run.rows("npu_stream")}

    best = bests(figures, {1: 4, 2: 8, 3: 8}, max)
    assert best[1] == pytest.approx(4, rel=0.15)
    assert best[2] == pytest.approx(8, rel=0.15)
    assert best[3] == pytest.approx(8, rel=0.15)


def test_contention_is_measured_both_ways_with_two_kinds_of_cpu_work(probe: RunProbe) -> None:
    run = probe("mm_stream", "--part", "contention", "--seconds", "0.1", timing=CAMPAIGN)
    pairs = {(row["parameters"]["of"], row["parameters"]["beside"]) for row in run.rows("contention")}
    assert pairs == {
        ("cpu_read", "npu_stream"),
        ("npu_stream", "cpu_read"),
        ("cpu_dot", "npu_stream"),
        ("npu_stream", "cpu_dot"),
    }
    for row in run.rows("contention"):
        assert row["checked"] == "exact"
        assert len(row["samples"]) == 7
        assert row["median"] > 0


def test_the_load_file_is_read_where_it_is_readable(probe: RunProbe, tmp_path: Path) -> None:
    load = tmp_path / "load"
    load.write_text("NPU load:  Core0: 93%, Core1:  0%, Core2:  4%,\n")
    run = probe("mm_masks", "--seconds", "0.15", "--load-file", str(load), timing=CAMPAIGN)
    for row in run.rows("core_mask"):
        assert row["evidence"]["load"]["core_percent"] == [93, 0, 4]
    load.write_text("NPU load:  7%\n")
    one = probe("mm_masks", "--seconds", "0.15", "--load-file", str(load), timing=CAMPAIGN)
    assert one.rows()[0]["evidence"]["load"]["core_percent"] == [7]
    absent = probe("mm_masks", "--seconds", "0.05", "--load-file", str(tmp_path / "no"), timing=CAMPAIGN)
    assert absent.rows()[0]["evidence"]["load"]["core_percent"] is None


def test_the_grid_covers_types_layouts_and_quantisation(probe: RunProbe) -> None:
    run = probe("mm_grid", "--quick", "--seconds", "0.005")
    families = {
        tuple(row["parameters"][key] for key in ("type", "B_layout", "AC_layout", "B_quant"))
        for row in run.rows("gemm_rate")
    }
    layouts = {("native", "norm"), ("native", "native"), ("norm", "norm")}
    wanted = {(code, *pair, "per_layer") for code in (1, 2, 10) for pair in layouts}
    assert families == wanted | {(2, "native", "norm", "per_channel")}
    for row in run.rows("gemm_rate"):
        assert row["checked"] == "exact"
        values = row["parameters"]
        ops = 2 * values["M"] * values["K"] * values["N"]
        assert row["evidence"]["ops_per_byte"] == pytest.approx(ops / row["evidence"]["bytes"])


def test_a_soak_writes_heartbeats_and_compares_throughout(probe: RunProbe) -> None:
    run = probe("mm_soak", "--seconds", "6", "--shape", "64x512x512", timing=CAMPAIGN)
    beats = [r["step"] for r in run.records if r["record"] == "step" and r["step"].startswith("heartbeat")]
    assert len(beats) >= 2
    row = run.row("soak")
    assert row["evidence"]["results_compared"] == 60 * 3
    assert row["checked"] == "exact"


def test_a_soak_whose_results_go_wrong_says_so(probe: RunProbe) -> None:
    run = probe("mm_soak", "--seconds", "1", "--shape", "64x512x512", timing=CAMPAIGN, faults="off-by-one:after=40")
    assert run.code == 1
    assert run.row("soak")["verdict"] == "failed"
    assert run.row("soak")["median"] is None
