# SPDX-License-Identifier: Apache-2.0
"""A report as KTAP version 1 (kernel documentation, dev-tools/ktap): one subtest for each group of cases."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from reports.cases import ERROR, FAILED, PASSED, SKIPPED, TIMED_OUT, Case, cases

_DIRECTIVE = {PASSED: "", FAILED: "", SKIPPED: " # SKIP", ERROR: " # ERROR", TIMED_OUT: " # TIMEOUT"}
_OK = frozenset({PASSED, SKIPPED})


def render_ktap(report: dict[str, Any]) -> str:
    """The report's cases. A ``#`` in a name would begin a directive, so names have none."""
    groups = [(name, list(members)) for name, members in groupby(cases(report), key=lambda case: case.group)]
    lines = ["KTAP version 1"]
    if report["simulated"]:
        lines.append("# SIMULATED: the mock answered in place of an NPU")
    lines.append(f"1..{len(groups)}")
    for number, (name, members) in enumerate(groups, 1):
        lines += ["  KTAP version 1", f"  # Subtest: {name}", f"  1..{len(members)}"]
        for index, case in enumerate(members, 1):
            lines += _case(index, case)
        bad = sum(case.outcome not in _OK for case in members)
        lines.append(f"{'not ok' if bad else 'ok'} {number} {name}")
    return "\n".join(lines) + "\n"


def _case(index: int, case: Case) -> list[str]:
    word = "ok" if case.outcome in _OK else "not ok"
    name = case.name.replace("#", " ").strip() or "unnamed"
    directive = _DIRECTIVE[case.outcome]
    detail = case.detail.replace("#", " ")
    if directive:
        return [f"  {word} {index} {name}{directive} {detail}"]
    return [f"  # {detail}", f"  {word} {index} {name}"]
