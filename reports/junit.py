# SPDX-License-Identifier: Apache-2.0
"""A report as JUnit XML, as CI systems read it: one suite for each group of cases."""

from __future__ import annotations

from itertools import groupby
from typing import Any
from xml.etree import ElementTree

from reports.cases import ERROR, FAILED, SKIPPED, TIMED_OUT, Case, cases

_ELEMENT = {FAILED: "failure", ERROR: "error", TIMED_OUT: "error", SKIPPED: "skipped"}


def render_junit(report: dict[str, Any]) -> str:
    """The report's cases as one XML document."""
    top = ElementTree.Element("testsuites", name="rknpu-kit" + (" SIMULATED" if report["simulated"] else ""))
    for name, members in groupby(cases(report), key=lambda case: case.group):
        _suite(top, name, list(members))
    ElementTree.indent(top)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(top, encoding="unicode") + "\n"


def _suite(top: ElementTree.Element, name: str, members: list[Case]) -> None:
    def count(*outcomes: str) -> str:
        return str(sum(case.outcome in outcomes for case in members))

    suite = ElementTree.SubElement(
        top,
        "testsuite",
        name=name,
        tests=str(len(members)),
        failures=count(FAILED),
        errors=count(ERROR, TIMED_OUT),
        skipped=count(SKIPPED),
        time=f"{sum(case.seconds for case in members):.3f}",
    )
    for case in members:
        place = {"classname": f"rknpu.{name}", "name": case.name, "time": f"{case.seconds:.3f}"}
        element = ElementTree.SubElement(suite, "testcase", place)
        kind = _ELEMENT.get(case.outcome)
        if kind is not None:
            ElementTree.SubElement(element, kind, message=case.detail)
        else:
            ElementTree.SubElement(element, "system-out").text = case.detail
