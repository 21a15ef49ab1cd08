# SPDX-License-Identifier: Apache-2.0
"""What a page of a report says, before it is HTML or Markdown: verdict, findings, facts, tables of numbers, steps.

Made from the report alone. All text in it is one line of printable ASCII; escaping for a format is the renderer's.
"""

from __future__ import annotations

from dataclasses import dataclass

from reports.conformance_section import titled
from reports.page_facts import PAGE_SECTIONS, fact_text
from reports.page_groups import NumberTable, number_tables
from reports.page_provenance import fact_anchor
from reports.page_reading import (
    Record,
    fact,
    failed_checks,
    is_right,
    is_valid,
    items,
    record,
    records,
    simulated,
    words,
)

SIMULATED_LINE = "SIMULATED: nothing on this page is a measurement of a real NPU."
_SEVERITIES = (("error", "error"), ("warning", "warning"), ("info", "note"))
_TONE_OF_VERDICT = {"passed": "good", "skipped": "warning", "unsupported": "warning"}


@dataclass(frozen=True)
class Head:
    """Title lines of a page. ``tone`` is error, warning or good; ``notice`` what stands above all else, if anything."""

    title: str
    when: str
    verdict: str
    proven: str
    tone: str
    notice: str
    broken_off: bool


@dataclass(frozen=True)
class FindingView:
    """One finding. ``severity`` is error, warning or info, whatever the report says."""

    severity: str
    word: str
    code: str
    what: str
    why: str
    fix: tuple[str, ...]
    evidence: str


@dataclass(frozen=True)
class FactRow:
    """One fact under its label, in lines, with the anchor of how it is known."""

    label: str
    lines: tuple[str, ...]
    anchor: str


@dataclass(frozen=True)
class FactSection:
    title: str
    rows: tuple[FactRow, ...]


@dataclass(frozen=True)
class StepRow:
    """How one step of the run ended. ``tone`` is good, warning or error."""

    name: str
    verdict: str
    tone: str
    text: str
    seconds: str


@dataclass(frozen=True)
class Page:
    """Everything a page says, in its order."""

    head: Head
    simulated: bool
    findings: tuple[FindingView, ...]
    facts: tuple[FactSection, ...]
    wrong: tuple[str, ...]
    tables: tuple[NumberTable, ...]
    steps: tuple[StepRow, ...]


def page_of(report: Record) -> Page:
    """The page of ``report``; anything a report may not hold is shown inert or left out, never an exception."""
    findings = tuple(_finding(row) for row in records(report.get("findings")))
    tables = number_tables(report)
    return Page(
        head=_head(report, findings),
        simulated=simulated(report),
        findings=findings,
        facts=tuple(section for section in _facts(report) if section.rows),
        wrong=tuple(_wrong(report)),
        tables=tables,
        steps=tuple(_step(row) for row in records(report.get("steps"))) + _checks(report),
    )


def _head(report: Record, findings: tuple[FindingView, ...]) -> Head:
    tool, run = record(report.get("tool")), record(report.get("run"))
    commit = words(tool.get("git_commit"), 20)
    version = f"rknpu-kit {words(tool.get('version'), 20) or '?'}" + (f" ({commit})" if commit else "")
    level = words(run.get("level"), 20) or "?"
    when = f"{words(run.get('started_at'), 40) or 'time unknown'}, {words(run.get('duration_s'), 20) or '?'} s"
    library = record(run.get("library"))
    if library:
        where = "the mock of this kit" if library.get("mock") is True else words(library.get("path"), 200)
        when += f"; library {where}, {words(library.get('version'), 100) or 'no version text'}"
    counts = {severity: sum(1 for row in findings if row.severity == severity) for severity, _ in _SEVERITIES}
    parts = [f"{counts[key]} {word}{'' if counts[key] == 1 else 's'}" for key, word in _SEVERITIES if counts[key]]
    failed = failed_checks(report)
    parts += [f"{failed} conformance check{'' if failed == 1 else 's'} failed"] if failed else []
    tone = "error" if counts["error"] or failed else "warning" if counts["warning"] else "good"
    return Head(
        title=f"{version} - capability report, level {level}",
        when=when,
        verdict=", ".join(parts) or "nothing wrong was found",
        proven=_proven(report),
        tone=tone,
        notice=_notice(report),
        broken_off=run.get("complete") is False,
    )


def _proven(report: Record) -> str:
    rows = records(report.get("measurements"))
    if not rows:
        return "Nothing was measured."
    exact = sum(1 for row in rows if row.get("checked") == "exact" and is_right(row))
    wrong = sum(1 for row in rows if row.get("verdict") == "failed")
    valued = [row for row in rows if row.get("median") is not None]
    valid = sum(1 for row in valued if is_valid(row))
    return (
        f"{exact} of {len(rows)} measured rows proven exact, {wrong} wrong; "
        f"{valid} of {len(valued)} numbers were taken under valid conditions."
    )


def _notice(report: Record) -> str:
    if not simulated(report):
        return ""
    note = words(record(report.get("simulation")).get("note"), 600)
    return f"SIMULATED: {note or 'the report does not say what stood in for the NPU.'}"


def _finding(row: Record) -> FindingView:
    severity = next((key for key, _ in _SEVERITIES if row.get("severity") == key), "info")
    return FindingView(
        severity=severity,
        word=dict(_SEVERITIES)[severity],
        code=words(row.get("code"), 40),
        what=words(row.get("what")),
        why=words(row.get("why")),
        fix=tuple(words(step) for step in items(row.get("fix"))[:20]),
        evidence=words(row.get("evidence"), 300),
    )


def _facts(report: Record) -> list[FactSection]:
    known = record(report.get("facts"))
    # On a machine that is no board, what such a machine cannot have is not worth a line.
    terse = fact(report, "soc.is_rockchip").get("value") is False
    sections = []
    for title, layout in PAGE_SECTIONS:
        rows = []
        for label, key, kind in layout:
            found = known.get(key)
            if not isinstance(found, dict) or (terse and found.get("value") in (None, [])):
                continue
            rows.append(FactRow(label, tuple(_fact_lines(found, kind)), fact_anchor(key)))
        sections.append(FactSection(title, tuple(rows)))
    return sections


def _fact_lines(found: Record, kind: str) -> list[str]:
    try:
        lines = fact_text(found, kind)[:40]
    except (ArithmeticError, LookupError, RecursionError):
        lines = [words(found.get("value"))]  # a shape the writer of this kind does not know
    return [words(line, 300) for line in lines]


def _wrong(report: Record) -> list[str]:
    lines = []
    for row in records(report.get("measurements")):
        if row.get("verdict") == "failed":
            lines.append(
                f"{words(row.get('name'), 60)} {words(row.get('parameters'), 200)}: {words(row.get('reason'))}"
            )
    return lines[:50]


def _checks(report: Record) -> tuple[StepRow, ...]:
    """The checks of the conformance suite, where a report holds them, as steps that say what they are."""
    checks = records(record(report.get("conformance")).get("checks"))
    return tuple(_step({**check, "name": f"conformance: {words(titled(check), 80)}"}) for check in checks)


def _step(row: Record) -> StepRow:
    verdict = words(row.get("verdict"), 30)
    seconds = row.get("duration_s")
    plain = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 <= seconds < 1e7
    return StepRow(
        name=words(row.get("name"), 80),
        verdict=verdict,
        tone=_TONE_OF_VERDICT.get(verdict, "error"),
        text=words(row.get("covered") if verdict == "passed" else row.get("reason")),
        seconds=f"{seconds:.1f} s" if plain else "",
    )
