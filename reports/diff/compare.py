# SPDX-License-Identifier: Apache-2.0
"""Two reports in, everything that differs out. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from reports.diff.checks import CheckChange, check_notes, compare_checks
from reports.diff.facts import FactChange, compare_facts
from reports.diff.findings import FindingChange, compare_findings
from reports.diff.rows import RowChange, compare_rows

Report = dict[str, Any]


class Incomparable(Exception):
    """Two reports that must not be set beside each other. The text is fit for the user."""


@dataclass(frozen=True)
class Difference:
    """What changed from one report to the other. ``mixed``: one side is of the mock, so no speed was judged."""

    before: dict[str, Any]
    after: dict[str, Any]
    facts: list[FactChange]
    rows: list[RowChange]
    findings: list[FindingChange]
    checks: list[CheckChange]
    notes: list[str]
    mixed: bool

    @property
    def severity_rose(self) -> bool:
        """A warning or an error came or got graver, or a result or a check that was right is not right any more."""
        rises = [change.rises for change in self.findings] + [change.rises for change in self.checks]
        return any(rises) or any(row.word == "broke" for row in self.rows)

    @property
    def slower(self) -> list[RowChange]:
        return [row for row in self.rows if row.word == "slower"]

    def counts(self) -> dict[str, int]:
        """How many measurements ended under each word."""
        return dict(Counter(row.word for row in self.rows))

    def as_json(self) -> dict[str, Any]:
        rows = [{**asdict(row), "ratio": asdict(row.ratio) if row.ratio else None} for row in self.rows if row.changed]
        return {
            "format": "rknpu-kit report difference",
            "format_version": 1,
            "before": self.before,
            "after": self.after,
            "mixed": self.mixed,
            "severity_rose": self.severity_rose,
            "notes": self.notes,
            "facts": [asdict(change) for change in self.facts],
            "measurements": {"counts": self.counts(), "changed": rows},
            "findings": [{"word": change.word, **change.finding} for change in self.findings],
            "checks": [asdict(change) for change in self.checks],
        }


def compare(before: Report, after: Report, *, mixed: bool = False) -> Difference:
    """The difference. Raises Incomparable for a simulated report beside a real one, unless ``mixed`` allows it;
    speeds are not compared even then."""
    simulated = bool(before.get("simulated")), bool(after.get("simulated"))
    crossed = simulated[0] != simulated[1]
    if crossed and not mixed:
        which = "first" if simulated[0] else "second"
        raise Incomparable(
            f"the {which} report is simulated (the mock answered in place of an NPU) and the other is not: their "
            "figures say nothing about each other. --mixed compares facts and findings only."
        )
    rows = [] if crossed else compare_rows(before.get("measurements") or [], after.get("measurements") or [])
    return Difference(
        before=_head(before),
        after=_head(after),
        facts=compare_facts(before.get("facts") or {}, after.get("facts") or {}),
        rows=rows,
        findings=compare_findings(before.get("findings") or [], after.get("findings") or []),
        checks=[] if crossed else compare_checks(before, after),
        notes=_notes(before, after, crossed=crossed),
        mixed=crossed,
    )


def _head(report: Report) -> dict[str, Any]:
    run, tool = report.get("run") or {}, report.get("tool") or {}
    library = run.get("library") or {}
    return {
        "started_at": run.get("started_at"),
        "level": run.get("level"),
        "tool_version": tool.get("version"),
        "library": library.get("version"),
        "simulated": bool(report.get("simulated")),
    }


def _notes(before: Report, after: Report, *, crossed: bool) -> list[str]:
    """What a reader must know before believing the comparison."""
    notes = []
    if crossed:
        notes.append("ONE OF THE TWO IS SIMULATED: measurements are not compared.")
    elif before.get("simulated"):
        notes.append("SIMULATED: both reports come from the mock; nothing here is a measurement of a real NPU.")
        one, other = ((report.get("simulation") or {}) for report in (before, after))
        for key in ("persona", "timing"):
            if one.get(key) != other.get(key):
                notes.append(f"The mock ran with another {key}: {one.get(key)} -> {other.get(key)}.")
    for word, report in (("first", before), ("second", after)):
        if not (report.get("run") or {}).get("complete", True):
            notes.append(f"The {word} run did not end by itself: what it lacks is not gone from the board.")
    levels = [(report.get("run") or {}).get("level") for report in (before, after)]
    if levels[0] != levels[1]:
        notes.append(
            f"The runs have different levels ({levels[0]}, {levels[1]}): one measures what the other does not."
        )
    return [*notes, *_conditions(before, after), *check_notes(before, after)]


def _conditions(before: Report, after: Report) -> list[str]:
    """Clocks under which the rows were taken, where they differ by more than 2 percent."""
    notes = []
    for key, word in (("npu_clock_hz", "NPU clock"), ("ddr_clock_hz", "memory clock")):
        one, other = _typical(before, key), _typical(after, key)
        if one and other and abs(other / one - 1) > 0.02:
            notes.append(f"The {word} while measuring was {one / 1e6:.0f} MHz, then {other / 1e6:.0f} MHz.")
    return notes


def _typical(report: Report, key: str) -> float | None:
    values = []
    for row in report.get("measurements") or []:
        conditions = (row.get("evidence") or {}).get("conditions")
        spread = conditions.get(key) if isinstance(conditions, dict) else None
        value = spread.get("median") if isinstance(spread, dict) else None
        if isinstance(value, (int, float)) and value > 0:
            values.append(float(value))
    return sorted(values)[len(values) // 2] if values else None
