# SPDX-License-Identifier: Apache-2.0
"""Prometheus, KTAP and JUnit: every record of the report is there with its outcome, and nothing breaks the format."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from reports.__main__ import main
from reports.junit import render_junit
from reports.ktap import render_ktap
from reports.markdown import render_markdown
from reports.prometheus import escaped, render_prometheus
from reports.terminal import render
from tests.hostile_reports import inert
from tests.reports_diff.made_reports import stored

Report = dict[str, Any]


@pytest.fixture
def mixed() -> Report:
    """A report in which each verdict stands once, and a finding of each severity."""
    report = stored()
    words = ("failed", "unsupported", "skipped", "could-not-run", "crashed", "timed-out")
    for row, word in zip(report["measurements"], words, strict=False):
        row.update(verdict=word, median=None, mad=None, samples=[], reason=f"because # {word}")
    base = report["findings"][0]
    report["findings"] = [{**base, "code": f"NPU-P00{n}", "severity": word} for n, word in enumerate(("error", "info"))]
    report["steps"][1].update(verdict="crashed", covered=None, reason="SIGSEGV")
    return report


def series(text: str) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_every_number_of_the_report_is_a_sample_and_no_other(mixed: Report) -> None:
    text = render_prometheus(mixed)
    inert.prometheus(text)
    found = series(text)
    medians = sorted(row["median"] for row in mixed["measurements"] if row["median"] is not None)
    samples = sorted(value for name, value in found.items() if name.startswith("rknpu_probe_measurement{"))
    assert samples == pytest.approx(medians)
    assert found["rknpu_probe_simulated"] == 1
    assert found['rknpu_probe_findings{severity="error"}'] == 1
    assert found['rknpu_probe_findings{severity="warning"}'] == 0
    facts = [fact["value"] for fact in mixed["facts"].values() if isinstance(fact["value"], (int, float))]
    assert sum(name.startswith("rknpu_probe_fact{") for name in found) == len(facts)


def test_label_values_are_escaped() -> None:
    assert escaped('a\\b"c\nd') == 'a\\\\b\\"c d'
    report = stored()
    report["facts"]["board.model"].update(value='"} 1\nforged{a="', reason=None)
    text = render_prometheus(report)
    inert.prometheus(text)
    assert "\nforged" not in text


def test_the_file_is_replaced_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "report.json", tmp_path / "node" / "rknpu.prom"
    source.write_text(json.dumps(stored()))
    for _ in range(2):
        assert main(["export", str(source), "--prom", str(target)]) == 0
        assert target.read_text() == render_prometheus(stored())
    assert [path.name for path in target.parent.iterdir()] == ["rknpu.prom"]
    assert target.stat().st_mode & 0o777 == 0o644
    capsys.readouterr()
    assert main(["export", str(source), "--prom", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err


def test_ktap_has_a_line_for_every_record_and_its_outcome(mixed: Report) -> None:
    text = render_ktap(mixed)
    inert.ktap(text)
    lines = [line.strip() for line in text.splitlines()]
    count = len(mixed["steps"]) + len(mixed["measurements"]) + len(mixed["findings"])
    assert sum(bool(re.match(r"(not )?ok ", line)) for line in lines) == count + 3
    for word, directive, ok in (
        ("failed", None, False),
        ("unsupported", "SKIP", True),
        ("skipped", "SKIP", True),
        ("could-not-run", "ERROR", False),
        ("crashed", "ERROR", False),
        ("timed-out", "TIMEOUT", False),
    ):
        if directive is None:
            (at,) = [index for index, line in enumerate(lines) if line.startswith(f"# {word}: because")]
            assert lines[at + 1].startswith("not ok")
        else:
            (line,) = [line for line in lines if f"# {directive} {word}: because" in line]
            assert line.startswith("ok" if ok else "not ok")
    assert lines[-1] == "not ok 3 findings"
    assert "# SIMULATED" in text


def test_junit_counts_what_it_holds(mixed: Report) -> None:
    text = render_junit(mixed)
    inert.junit(text)
    suites = {suite.attrib["name"]: suite for suite in ElementTree.fromstring(text.partition("\n")[2])}
    assert set(suites) == {"steps", "measurements", "findings"}
    rows = suites["measurements"]
    assert (rows.attrib["failures"], rows.attrib["errors"], rows.attrib["skipped"]) == ("1", "3", "2")
    assert len(rows.findall("testcase/failure")) == 1
    assert len(rows.findall("testcase/error")) == 3
    assert len(rows.findall("testcase/skipped")) == 2
    assert suites["steps"].attrib["errors"] == "1"
    assert suites["findings"].attrib["failures"] == "1"
    assert "SIMULATED" in text


def test_a_clean_report_is_ok_throughout() -> None:
    assert "not ok" not in render_ktap(stored())
    assert "<failure" not in render_junit(stored())


def test_checks_of_the_conformance_suite_are_cases_and_stand_on_the_page() -> None:
    report = stored()
    words = ("failed", "3 of 8 elements differ"), ("passed", "every element of C")
    report["conformance"] = {
        **{"simulated": True, "soc": None, "level": "quick", "seed": 1, "library": report["run"]["library"]},
        "checks": [
            {
                **{"name": f"int8-{word}", "verdict": word, "duration_s": 0.5, "known_refusals": []},
                **{"covered": text, "reason": None if word == "passed" else text, "unexpected_passes": []},
            }
            for word, text in words
        ],
    }
    junit = ElementTree.fromstring(render_junit(report).partition("\n")[2])
    (suite,) = (suite for suite in junit if suite.attrib["name"] == "conformance")
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["time"]) == ("2", "1", "1.000")
    inert.ktap(render_ktap(report))
    assert "  not ok 1 int8-failed" in render_ktap(report)
    for text in (render(report), render_markdown(report)):
        assert "1 conformance check failed" in text
        assert "int8-passed" in text
    inert.markdown(render_markdown(report))
    page = render(report)
    assert "3 of 8 elements differ" in page.partition("Conformance of ")[2]
    assert "Conformance of " not in render(stored())
