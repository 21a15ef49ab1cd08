# SPDX-License-Identifier: Apache-2.0
"""The conformance section through ``merge``, ``diff``, ``--prom``, the page and the exports, for every suite."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from conformance.section import write_section
from reports.cases import cases
from reports.conformance_section import joined
from reports.diff.compare import compare
from reports.diff.page import render as render_diff
from reports.diff.page import render_markdown
from reports.merge import merge
from reports.prometheus import render_prometheus
from reports.terminal import render
from tests.conformance.conftest import ROOT
from tests.reports_diff.made_reports import stored

SCHEMA = json.loads((ROOT / "reports/schema/capability_report.schema.json").read_text("utf-8"))


def section(suite: str | None = "runtime", simulated: bool = True, **verdicts: str) -> dict[str, Any]:
    """A section of one suite; suite None as it was written before there were suites."""
    named = {} if suite is None else {"suite": suite}
    checks: list[dict[str, Any]] = [
        {
            **named,
            "name": name,
            "verdict": verdict.replace("_", "-"),
            "duration_s": 0.5,
            "covered": "all of it" if verdict == "passed" else None,
            "reason": None if verdict == "passed" else f"{name} ended so",
            "known_refusals": [],
            "unexpected_passes": [],
        }
        for name, verdict in verdicts.items()
    ]
    made: dict[str, Any] = {
        "simulated": simulated,
        "soc": "rk3588",
        "level": "quick",
        "seed": 1,
        "library": {"path": "/lib/x.so", "version": "2.3.2", "sha256": "0" * 64, "mock": True},
        "checks": checks,
    }
    if suite is not None:
        told = {
            "suite": suite,
            "target": f"the {suite} of somebody",
            "simulated": simulated,
            "level": "quick",
            "seed": 1,
        }
        made["targets"] = [told]
    return made


def report(conformance: dict[str, Any] | None, started: str = "2026-11-30T10:00:00.000Z") -> dict[str, Any]:
    made = stored()
    made["run"]["started_at"] = started
    made.pop("conformance", None)
    if conformance is not None:
        made["conformance"] = conformance
    return made


FIRST, SECOND, THIRD = (f"2026-11-30T1{hour}:00:00.000Z" for hour in (0, 1, 2))


def test_merge_keeps_the_newest_run_of_each_suite_and_tells_what_changed() -> None:
    runs = [
        report(section(one="passed", two="passed"), FIRST),
        report(section("engine", three="failed"), SECOND),
        report(section(one="failed", two="passed"), THIRD),
    ]
    merged = merge(runs[::-1], ["c", "b", "a"])
    jsonschema.validate(merged, SCHEMA)
    found = {(check["suite"], check["name"]): check["verdict"] for check in merged["conformance"]["checks"]}
    assert found == {("runtime", "one"): "failed", ("runtime", "two"): "passed", ("engine", "three"): "failed"}
    assert {target["suite"] for target in merged["conformance"]["targets"]} == {"runtime", "engine"}
    told = [conflict for conflict in merged["merged"]["conflicts"] if conflict["of"] == "conformance"]
    assert told == [{"of": "conformance", "name": "runtime one", "values": ["passed", "failed"]}]


def test_merge_takes_the_section_of_an_older_report_where_the_newest_has_none() -> None:
    merged = merge([report(section(one="passed"), FIRST), report(None, SECOND)], ["a", "b"])
    assert [check["name"] for check in merged["conformance"]["checks"]] == ["one"]
    assert "conformance" not in merge([report(None, FIRST), report(None, SECOND)], ["a", "b"])


def test_a_section_without_suites_is_that_of_the_runtime_and_is_replaced_by_a_newer_one() -> None:
    old = section(None, one="passed")
    both = joined(old, section("server", far="passed"))
    assert [check["name"] for check in both["checks"]] == ["one", "far"]
    assert [target["suite"] for target in both["targets"]] == ["runtime", "server"]
    assert [check["name"] for check in joined(old, section(two="passed"))["checks"]] == ["two"]
    assert joined(section(two="passed"), old) == old


def test_a_check_that_broke_makes_a_diff_worse_and_is_named() -> None:
    before = report(section(one="passed", two="failed", three="unsupported", four="passed"))
    after = report(section(one="crashed", two="passed", three="failed", four="unsupported"))
    difference = compare(before, after)
    words = {change.name: change.word for change in difference.checks}
    assert words == {"one": "broke", "two": "mended", "three": "broke", "four": "changed"}
    assert difference.severity_rose
    assert not compare(after, after).severity_rose
    for text in (render_diff(difference), render_markdown(difference)):
        assert "Checks of the conformance suite" in text
        assert "checks: 2 broke" in text
        assert "one ended so" in text
    assert [check["word"] for check in difference.as_json()["checks"]] == ["broke", "broke", "changed", "mended"]


def test_a_check_that_was_mended_or_is_no_longer_offered_is_no_worse() -> None:
    difference = compare(report(section(one="failed", two="passed")), report(section(one="passed", two="unsupported")))
    assert len(difference.checks) == 2
    assert not difference.severity_rose


def test_a_suite_in_one_report_alone_is_a_note_and_its_faults_count() -> None:
    difference = compare(report(None), report(section("server", one="passed", two="failed")))
    assert [(change.name, change.word) for change in difference.checks] == [("two", "came")]
    assert "Conformance of suite server stands in the second report alone." in difference.notes
    assert difference.severity_rose
    assert not compare(report(section(one="failed")), report(None)).severity_rose


def test_prometheus_has_a_gauge_for_each_check_that_says_right_or_wrong() -> None:
    made = report(section(good="passed", bad="failed", dead="timed_out", none="unsupported", stopped="could_not_run"))
    lines = [line for line in render_prometheus(made).splitlines() if line.startswith("rknpu_conformance_check{")]
    assert lines == [
        'rknpu_conformance_check{name="good",suite="runtime"} 1',
        'rknpu_conformance_check{name="bad",suite="runtime"} 0',
        'rknpu_conformance_check{name="dead",suite="runtime"} 0',
        'rknpu_conformance_check{name="stopped",suite="runtime"} 0',
    ]
    assert "rknpu_conformance" not in render_prometheus(report(None))


def test_the_page_shows_every_suite_with_what_it_judged() -> None:
    both = joined(section(one="passed"), section("server", simulated=False, far="failed"))
    page = render(report(both))
    assert "Conformance of the runtime of somebody, suite runtime (SIMULATED)" in page
    assert "Conformance of the server of somebody, suite server\n" in page
    assert "far ended so" in page
    assert "Conformance of 2.3.2, suite runtime (SIMULATED)" in render(report(section(None, one="passed")))


@pytest.mark.parametrize("redacted", [True, False])
def test_a_section_added_to_a_redacted_report_names_nobody(tmp_path: Path, redacted: bool) -> None:
    path = tmp_path / "report.json"
    path.write_text(json.dumps({**report(None), "redacted": redacted}), "utf-8")
    made = section(one="passed")
    made["library"]["path"] = "/home/somebody/librknnrt.so"
    made["targets"][0]["target"] = "/home/somebody/librknnrt.so (2.3.2)"
    write_section(path, made)
    assert ("somebody" in path.read_text("utf-8")) is not redacted
    assert json.loads(path.read_text("utf-8"))["conformance"]["checks"] == made["checks"]


def test_cases_of_other_suites_carry_the_name_of_the_suite() -> None:
    both = joined(section(same="passed"), section("engine", same="failed"))
    names = [case.name for case in cases(report(both)) if case.group == "conformance"]
    assert names == ["same", "engine: same"]
