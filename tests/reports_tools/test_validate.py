# SPDX-License-Identifier: Apache-2.0
"""``validate`` finds every way in which a report can contradict itself: one fault at a time is put in and seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.validate import validate
from tests.reports_diff.made_reports import stored, timed_rows

Report = dict[str, Any]
ROW = timed_rows()[0]


def row(report: Report) -> dict[str, Any]:
    found: dict[str, Any] = report["measurements"][ROW]
    return found


FAULTS: dict[str, tuple[Callable[[Report], Any], str, str]] = {
    "median beside its samples": (lambda r: row(r).update(median=row(r)["median"] * 1.001), "error", "median"),
    "deviation beside its samples": (lambda r: row(r).update(mad=row(r)["median"]), "error", "mad"),
    "median without samples": (lambda r: row(r).update(samples=[]), "warning", "samples"),
    "samples without median": (lambda r: row(r).update(median=None, mad=None, reason="x"), "error", "samples"),
    "number of a failed row": (lambda r: row(r).update(verdict="failed", reason="wrong"), "error", "median"),
    "number nobody compared": (lambda r: row(r).update(checked="not"), "warning", "checked"),
    "null sample": (lambda r: row(r)["samples"].append(None), "warning", "samples"),
    "unit": (lambda r: row(r).update(unit="furlongs"), "warning", "unit"),
    "valid with reasons": (lambda r: row(r).update(validity={"valid": True, "reasons": ["x"]}), "warning", "validity"),
    "row twice": (lambda r: r["measurements"].append(dict(row(r))), "error", "measurements"),
    "step twice": (lambda r: r["steps"].append(dict(r["steps"][0])), "warning", "steps"),
    "finding twice": (lambda r: r["findings"].insert(1, dict(r["findings"][0])), "warning", "findings"),
    "unknown code": (lambda r: r["findings"][0].update(code="NPU-Z999"), "warning", "code"),
    "other severity": (lambda r: r["findings"][0].update(severity="info"), "warning", "severity"),
    "exit code": (lambda r: r["run"].update(exit_code=1), "error", "exit_code"),
    "mock as silicon": (lambda r: r.update(simulated=False, simulation=None), "error", "simulated"),
    "silicon as mock": (lambda r: r["run"]["library"].update(mock=False, version="2.3.2"), "error", "simulated"),
    "clock set back": (lambda r: r["run"].update(ended_at="2020-01-01T00:00:00.000Z"), "warning", "ended_at"),
    "duration": (lambda r: r["run"].update(duration_s=5000.0), "warning", "duration_s"),
    "no such date": (lambda r: r["run"].update(started_at="2026-13-41T00:00:00.000Z"), "error", "started_at"),
    "text for a number": (lambda r: r["facts"]["memory.total_bytes"].update(value="8 GiB"), "warning", "memory"),
    "address left in": (lambda r: r["steps"][0].update(covered="eth0 00:1a:2b:3c:4d:5e"), "warning", "covered"),
    "shape": (lambda r: r["steps"][0].pop("verdict"), "error", "steps/0"),
}


def test_a_report_without_fault_has_no_flaw() -> None:
    assert validate(stored()) == []


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_where_it_is(name: str) -> None:
    damage, level, where = FAULTS[name]
    report = stored()
    damage(report)
    flaws = validate(report)
    assert any(flaw.level == level and where in flaw.where for flaw in flaws), flaws
    assert len(flaws) <= 2, flaws


def test_the_command_says_it_and_ends_with_1_for_errors_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    for name, code in (("null sample", 0), ("mock as silicon", 1)):
        report = stored()
        FAULTS[name][0](report)
        file.write_text(json.dumps(report))
        assert main(["validate", str(file)]) == code
        assert main(["validate", str(file), "--json"]) == code
        text, _, document = capsys.readouterr().out.partition("{")
        assert FAULTS[name][2] in text
        assert json.loads("{" + document)["valid"] is (code == 0)
