# SPDX-License-Identifier: Apache-2.0
"""A report as test cases, for formats that know nothing but those: its steps, its measured rows, its findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reports.conformance_section import checks_of, titled
from reports.contract import Verdict
from reports.diff.page import row_words
from reports.text import inert

PASSED, FAILED, ERROR, TIMED_OUT, SKIPPED = "passed", "failed", "error", "timed-out", "skipped"

_OUTCOMES = {
    Verdict.PASSED.value: PASSED,
    Verdict.FAILED.value: FAILED,
    Verdict.UNSUPPORTED.value: SKIPPED,
    Verdict.SKIPPED.value: SKIPPED,
    Verdict.COULD_NOT_RUN.value: ERROR,
    Verdict.CRASHED.value: ERROR,
    Verdict.TIMED_OUT.value: TIMED_OUT,
}


@dataclass(frozen=True)
class Case:
    """``group``: steps, measurements, conformance, findings. ``detail`` says what a pass covers, or why it is none."""

    group: str
    name: str
    outcome: str
    detail: str
    seconds: float = 0.0


def cases(report: dict[str, Any]) -> list[Case]:
    """Every case, in the order of the report. All text is one line of printable ASCII."""
    checks = [{**check, "name": titled(check)} for check in checks_of(report)]
    return [
        *_steps("steps", report["steps"]),
        *_rows(report),
        *_steps("conformance", checks),
        *_findings(report),
    ]


def _steps(group: str, steps: list[dict[str, Any]]) -> Iterator[Case]:
    for step in steps:
        verdict = str(step["verdict"])
        detail = step["covered"] if verdict == PASSED else f"{verdict}: {step['reason']}"
        yield Case(group, inert(step["name"], 100), _outcome(verdict), inert(detail, 500), float(step["duration_s"]))


def _rows(report: dict[str, Any]) -> Iterator[Case]:
    for row in report["measurements"]:
        verdict = str(row["verdict"])
        if verdict != PASSED:
            detail = f"{verdict}: {row['reason']}"
        elif row["median"] is None:
            detail = f"output {row['checked']}"
        else:
            validity = "valid" if row["validity"]["valid"] else f"not valid: {'; '.join(row['validity']['reasons'])}"
            detail = f"{row['median']:.6g} {row['unit']}, output {row['checked']}, {validity}"
        yield Case(
            "measurements", row_words(row["name"], row["parameters"], full=True), _outcome(verdict), inert(detail, 500)
        )


def _findings(report: dict[str, Any]) -> Iterator[Case]:
    """A finding of severity error is a case that failed. Others pass: the exit code of a run ignores them too."""
    for finding in report["findings"]:
        severity = str(finding["severity"])
        outcome = PASSED if severity in ("warning", "info") else FAILED
        detail = f"{severity}: {finding['what']} {finding['evidence']}"
        yield Case("findings", inert(finding["code"], 40), outcome, inert(detail, 500))


def _outcome(verdict: str) -> str:
    return _OUTCOMES.get(verdict, ERROR)
