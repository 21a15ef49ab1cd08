# SPDX-License-Identifier: Apache-2.0
"""``diff`` is silent about noise, finds the one thing that changed, and never blames bad conditions on the board."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.diff import compare
from reports.diff.compare import Incomparable
from reports.diff.page import render, render_markdown
from reports.diff.rows import RowChange, run_samples
from tests.reports_diff.made_reports import Report, copied, noisy, set_samples, stored, timed_rows


def changed(before: Report, after: Report) -> list[RowChange]:
    return [row for row in compare(before, after).rows if row.changed]


@pytest.mark.parametrize(("noise", "outliers"), [(0.002, 0.0), (0.01, 0.0), (0.02, 0.05), (0.005, 0.2)])
def test_two_runs_of_the_same_thing_say_no_change(noise: float, outliers: float) -> None:
    quiet = judged = 0
    for pair in range(100):
        rows = compare(
            noisy(2 * pair, noise=noise, outliers=outliers), noisy(2 * pair + 1, noise=noise, outliers=outliers)
        ).rows
        quiet += not any(row.changed for row in rows)
        judged += sum(row.ratio is not None for row in rows)
    assert quiet >= 95
    assert judged == 100 * len(timed_rows())


def test_one_row_that_is_10_percent_slower_is_found_and_no_other() -> None:
    for seed, index in enumerate(timed_rows()):
        before, after = noisy(1000 + seed, noise=0.01), noisy(2000 + seed, noise=0.01, lower=index)
        row = after["measurements"][index]
        (found,) = changed(before, after)
        assert (found.name, found.parameters) == (row["name"], row["parameters"])
        assert found.ratio is not None
        assert found.ratio.low < 0.9 < found.ratio.high
        rate = row["unit"] in ("tops", "gbps", "gops", "mhz")
        assert found.word == ("slower" if rate else "faster" if row["unit"] == "us" else "lower")


def test_a_change_within_the_floor_is_no_change() -> None:
    before = noisy(1, noise=0.0001)
    after = copied(before)
    for index in timed_rows():
        row = after["measurements"][index]
        set_samples(row, [value * 0.98 for value in row["samples"]])
    assert changed(before, after) == []


def test_a_row_measured_under_bad_conditions_is_never_called_changed() -> None:
    index = timed_rows()[0]
    for bad in (0, 1):
        sides = [noisy(1, noise=0.001), noisy(2, noise=0.001, lower=index, by=0.5)]
        sides[bad]["measurements"][index]["validity"] = {"valid": False, "reasons": ["background load: much"]}
        difference = compare(*sides)
        assert changed(*sides) == []
        row = difference.rows[index]
        assert row.word == "not judged"
        assert "background load: much" in str(row.why)
        assert not difference.severity_rose


def test_a_number_whose_output_nobody_compared_is_not_judged() -> None:
    index = timed_rows()[0]
    before, after = noisy(1, noise=0.001), noisy(2, noise=0.001, lower=index, by=0.5)
    after["measurements"][index]["checked"] = "not"
    row = compare(before, after).rows[index]
    assert row.word == "not judged"
    assert "nobody compared" in str(row.why)


def test_a_result_that_is_right_no_more_is_told_whatever_the_conditions(tmp_path: Path) -> None:
    before, after = noisy(1), noisy(2)
    index = timed_rows()[1]
    after["measurements"][index].update(verdict="failed", median=None, mad=None, samples=[], reason="3 wrong elements")
    difference = compare(before, after)
    (row,) = [row for row in difference.rows if row.changed]
    assert row.word == "broke"
    assert "3 wrong elements" in str(row.why)
    assert difference.severity_rose
    assert [row.word for row in compare(after, before).rows if row.changed] == ["mended"]
    files = saved(tmp_path, before, after)
    assert main(["diff", *files]) == 1


def test_a_row_that_was_not_measured_this_time_is_not_broken() -> None:
    before, after = noisy(1), noisy(2)
    after["measurements"][timed_rows()[1]].update(verdict="skipped", median=None, samples=[], reason="level quick")
    difference = compare(before, after)
    assert [row.word for row in difference.rows if row.changed] == ["other"]
    assert not difference.severity_rose


def test_counts_are_compared_as_they_are() -> None:
    before, after = stored(), stored()
    limit = next(row for row in after["measurements"] if row["name"] == "shape_limit")
    set_samples(limit, [limit["median"] - 32])
    (row,) = changed(before, after)
    assert row.word == "changed"


def test_rows_of_one_report_only_come_and_go() -> None:
    before, after = noisy(1), noisy(2)
    gone = before["measurements"][3]
    after["measurements"].remove(after["measurements"][3])
    (row,) = changed(before, after)
    assert (row.word, row.name, row.before) == ("went", gone["name"], gone["median"])
    assert [row.word for row in changed(after, before)] == ["came"]


def test_the_order_of_parameters_does_not_matter() -> None:
    before, after = noisy(1), noisy(1)
    for row in after["measurements"]:
        row["parameters"] = dict(reversed(row["parameters"].items()))
    assert changed(before, after) == []


def test_several_runs_show_how_runs_differ() -> None:
    """Samples of one run agree within 0.1 % and runs within 5 %: as one run a difference of 8 % looks sure."""
    runs = ([1.00, 1.05, 0.96, 1.04], [1.09, 1.02, 1.13, 1.10])
    before, after = stored(), stored()
    index = timed_rows()[0]
    for report, centers in zip((before, after), runs, strict=True):
        row = report["measurements"][index]
        row["validity"] = {"valid": True, "reasons": []}
        set_samples(row, [center * (1 + 0.0005 * step) for center in centers for step in (-1, 0, 1, 0, 1)])
        row["evidence"]["samples_of_runs"] = [5, 5, 5, 5]
        assert run_samples(row) == pytest.approx(centers, rel=1e-3)
    assert changed(before, after) == []


def finding(code: str, severity: str, what: str) -> dict[str, Any]:
    return {"code": code, "severity": severity, "what": what, "why": "w", "fix": [], "evidence": "e", "rank": 1}


def test_findings_come_and_go_and_numbers_in_them_do_not_matter(tmp_path: Path) -> None:
    before, after = stored(), stored()
    before["findings"] = [finding("NPU-P010", "warning", "Hot: 81 C."), finding("NPU-E001", "info", "No board.")]
    after["findings"] = [finding("NPU-P010", "warning", "Hot: 79 C."), finding("NPU-C034", "error", "Wrong.")]
    difference = compare(before, after)
    assert [(change.word, change.finding["code"]) for change in difference.findings] == [
        ("came", "NPU-C034"),
        ("went", "NPU-E001"),
    ]
    assert difference.severity_rose
    assert main(["diff", *saved(tmp_path, before, after)]) == 1
    assert main(["diff", *saved(tmp_path, after, before)]) == 0


def test_a_note_that_comes_is_not_worse_and_a_warning_that_turns_error_is() -> None:
    quiet, note, warning, error = (stored() for _ in range(4))
    quiet["findings"] = []
    note["findings"] = [finding("NPU-E001", "info", "a")]
    warning["findings"] = [finding("NPU-E001", "warning", "a")]
    error["findings"] = [finding("NPU-E001", "error", "a")]
    assert not compare(quiet, note).severity_rose
    assert compare(quiet, warning).severity_rose
    assert compare(warning, error).severity_rose
    assert not compare(error, warning).severity_rose
    assert [change.word for change in compare(warning, error).findings] == ["graver"]


def test_only_facts_that_changed_are_told_and_only_the_part_that_did() -> None:
    before, after = stored(), stored()
    cluster = {"cpus": [0, 1], "governor": "ondemand", "core": "A76"}
    before["facts"]["cpu.clusters"]["value"] = [cluster]
    after["facts"]["cpu.clusters"]["value"] = [{**cluster, "governor": "performance"}]
    before["facts"]["npu.device_node"].update(value="/dev/dri/renderD129", reason=None)
    after["facts"]["npu.device_node"].update(value=None, reason="permission denied", needs_root=True)
    after["facts"]["host.load1"]["value"] = 7.5
    changes = compare(before, after).facts
    assert [(change.key, change.before, change.after) for change in changes if not change.volatile] == [
        ("cpu.clusters[0].governor", "ondemand", "performance"),
        ("npu.device_node", "/dev/dri/renderD129", "unknown (permission denied; root could read it)"),
    ]
    assert [change.key for change in changes if change.volatile] == ["host.load1"]
    page = render(compare(before, after))
    assert "governor" in page
    assert "host.load1" not in page
    assert "host.load1" in render(compare(before, after), everything=True)


def test_simulated_and_real_reports_are_not_set_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mock, board = stored(), {**stored(), "simulated": False, "simulation": None}
    with pytest.raises(Incomparable):
        compare(mock, board)
    files = saved(tmp_path, mock, board)
    assert main(["diff", *files]) == 2
    assert "simulated" in capsys.readouterr().err
    assert main(["diff", *files, "--mixed"]) == 0
    out = capsys.readouterr().out
    assert "ONE OF THE TWO IS SIMULATED" in out
    assert "not compared" in out


def test_another_timing_of_the_mock_and_a_run_cut_short_are_said() -> None:
    before, after = stored(), stored()
    after["simulation"]["timing"] = "rk3576"
    after["run"]["complete"] = False
    notes = " ".join(compare(before, after).notes)
    assert "campaign -> rk3576" in notes
    assert "did not end by itself" in notes


def test_the_forms_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    index = timed_rows()[0]
    before, after = noisy(1, noise=0.002), noisy(2, noise=0.002, lower=index)
    files = saved(tmp_path, before, after)
    assert main(["diff", *files, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (row,) = document["measurements"]["changed"]
    assert row["word"] == "slower"
    assert document["measurements"]["counts"]["slower"] == 1
    difference = compare(before, after)
    for page in (render(difference), render_markdown(difference)):
        assert "1 slower" in page
        assert f"{row['ratio']['value']:.3f}" in page
    assert main(["diff", *files, "--fail-on-slower"]) == 1


def saved(folder: Path, *reports: Report) -> list[str]:
    names = []
    for index, report in enumerate(reports):
        (folder / f"{index}.json").write_text(json.dumps(report))
        names.append(str(folder / f"{index}.json"))
    return names
