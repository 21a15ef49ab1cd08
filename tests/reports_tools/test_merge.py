# SPDX-License-Identifier: Apache-2.0
"""``merge`` keeps every raw sample, refuses what is not one board, and says what does not agree."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from reports.__main__ import main
from reports.diff import compare
from reports.load import load_report
from reports.merge import DifferentBoards, merge
from reports.validate import validate
from tests.reports_diff.made_reports import noisy, set_samples, timed_rows

Report = dict[str, Any]
ROW = timed_rows()[0]


def runs(count: int) -> list[Report]:
    made = [noisy(seed) for seed in range(count)]
    for hour, report in enumerate(made):
        report["run"]["started_at"] = f"2026-01-02T{hour:02}:00:00.000Z"
        report["run"]["ended_at"] = f"2026-01-02T{hour:02}:01:08.084Z"
    return made


def merged(reports: list[Report]) -> Report:
    return merge(reports, [f"{index}.json" for index in range(len(reports))])


def test_every_sample_of_every_run_is_kept_in_order_of_time() -> None:
    reports = runs(3)
    whole = merged([reports[2], reports[0], reports[1]])
    samples = [value for report in reports for value in report["measurements"][ROW]["samples"]]
    row = whole["measurements"][ROW]
    assert row["samples"] == samples
    assert row["median"] == median(samples)
    assert row["evidence"]["samples_of_runs"] == [len(report["measurements"][ROW]["samples"]) for report in reports]
    assert whole["run"]["started_at"] == reports[0]["run"]["started_at"]
    assert whole["run"]["ended_at"] == reports[2]["run"]["ended_at"]
    assert [flaw for flaw in validate(whole) if flaw.level == "error"] == []


def test_merged_runs_can_be_compared_and_merged_runs_of_the_same_thing_agree() -> None:
    reports = runs(8)
    assert not any(row.changed for row in compare(merged(reports[:4]), merged(reports[4:])).rows)


def test_invalid_runs_are_left_out_where_a_valid_one_is() -> None:
    reports = runs(3)
    bad = reports[1]["measurements"][ROW]
    bad["validity"] = {"valid": False, "reasons": ["hot"]}
    row = merged(reports)["measurements"][ROW]
    assert row["validity"] == {"valid": True, "reasons": []}
    assert len(row["samples"]) == sum(len(reports[index]["measurements"][ROW]["samples"]) for index in (0, 2))
    assert row["evidence"]["runs_left_out"] == 1
    for report in reports:
        report["measurements"][ROW]["validity"] = {"valid": False, "reasons": ["hot"]}
    assert merged(reports)["measurements"][ROW]["validity"] == {"valid": False, "reasons": ["hot"]}


def test_one_wrong_run_makes_the_row_wrong() -> None:
    reports = runs(2)
    reports[0]["measurements"][ROW].update(verdict="failed", median=None, mad=None, samples=[], reason="3 wrong")
    whole = merged(reports)
    row = whole["measurements"][ROW]
    assert (row["verdict"], row["median"], row["samples"], row["reason"]) == ("failed", None, [], "3 wrong")
    assert [conflict["values"] for conflict in whole["merged"]["conflicts"]] == [["failed", "passed"]]


def test_what_runs_do_not_agree_on_is_said() -> None:
    reports = runs(2)
    reports[0]["facts"]["npu.governor"].update(value="performance", reason=None)
    reports[1]["facts"]["npu.governor"].update(value="simple_ondemand", reason=None)
    slow = reports[1]["measurements"][ROW]
    set_samples(slow, [value * 0.5 for value in slow["samples"]])
    limit = next(row for row in reports[1]["measurements"] if row["name"] == "shape_limit")
    set_samples(limit, [limit["median"] - 32])
    whole = merged(reports)
    names = [conflict["name"].partition('", {')[0].strip('["') for conflict in whole["merged"]["conflicts"]]
    assert sorted(names) == ["gemm_rate", "npu.governor", "shape_limit"]
    assert whole["facts"]["npu.governor"]["value"] == "simple_ondemand"
    kept = next(row for row in whole["measurements"] if row["name"] == "shape_limit")
    assert kept["median"] == limit["median"]


def test_a_fact_that_one_run_could_not_read_is_taken_from_the_other() -> None:
    reports = runs(2)
    reports[0]["facts"]["npu.load_percent"].update(value=[0, 0, 0], reason=None)
    assert merged(reports)["facts"]["npu.load_percent"]["value"] == [0, 0, 0]
    assert merged(reports)["merged"]["conflicts"] == []


def test_findings_of_any_run_are_told_once() -> None:
    reports = runs(2)
    extra = {**reports[0]["findings"][0], "code": "NPU-C034", "severity": "error", "what": "Wrong."}
    reports[0]["findings"].append(extra)
    whole = merged(reports)
    codes = [finding["code"] for finding in whole["findings"]]
    assert codes.count("NPU-C034") == 1
    assert len(codes) == len(reports[1]["findings"]) + 1
    assert codes[0] == "NPU-C034"
    assert whole["run"]["exit_code"] == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [("board.model", "Radxa ROCK 5B"), ("soc.name", "RK3576"), ("cpu.present", 4), ("memory.total_bytes", 4 << 30)],
)
def test_another_board_is_refused(key: str, value: Any) -> None:
    reports = runs(2)
    for report in reports:
        report["facts"]["board.model"].update(value="Orange Pi 5", reason=None)
        report["facts"]["soc.name"].update(value="RK3588", reason=None)
    reports[1]["facts"][key]["value"] = value
    with pytest.raises(DifferentBoards, match=key):
        merged(reports)


def test_memory_that_two_kernels_count_differently_is_one_board() -> None:
    reports = runs(2)
    reports[1]["facts"]["memory.total_bytes"]["value"] *= 0.99
    merged(reports)


def test_a_board_and_the_mock_or_two_libraries_are_refused() -> None:
    reports = runs(2)
    reports[1].update(simulated=False, simulation=None)
    with pytest.raises(DifferentBoards, match="simulated"):
        merged(reports)
    reports = runs(2)
    reports[1]["run"]["library"]["version"] = "librknnrt version: 2.1.0"
    with pytest.raises(DifferentBoards, match="libraries"):
        merged(reports)


def test_the_command_writes_a_report_that_is_read_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = []
    for index, report in enumerate(runs(2)):
        files.append(str(tmp_path / f"{index}.json"))
        Path(files[-1]).write_text(json.dumps(report))
    out = tmp_path / "merged.json"
    assert main(["merge", *files, "-o", str(out)]) == 0
    assert "no conflicts" in capsys.readouterr().out
    assert len(load_report(out)["merged"]["reports"]) == 2
    assert main(["merge", *files, "-o", str(out)]) == 2
    assert "exists already" in capsys.readouterr().err
    assert main(["merge", files[0], "-o", str(tmp_path / "x.json")]) == 2
    assert "2 to" in capsys.readouterr().err
