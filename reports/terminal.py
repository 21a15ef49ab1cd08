# SPDX-License-Identifier: Apache-2.0
"""The terminal page: the verdict first, then findings with next steps, then facts, numbers and how each step ended.

Reads the report alone, as JSON gives it, so that a saved report shows the same page; everything in it is treated as
text from a stranger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.baselines.page import baseline_lines
from reports.conformance_section import checks_of, suite_of, targets_of
from reports.page_facts import PAGE_SECTIONS, fact_text
from reports.page_numbers import SHORT, number, number_tables, parameter, proof, spread, type_words, valid
from reports.page_reading import failed_checks
from reports.text import inert, table, wrapped

_COLOURS = {
    "error": "\x1b[31m",
    "warning": "\x1b[33m",
    "info": "\x1b[36m",
    "good": "\x1b[32m",
    "loud": "\x1b[1;35m",
}
_RESET = "\x1b[0m"


def render(report: dict[str, Any], *, width: int = 100, colour: bool = False) -> str:
    """The page of ``report`` as text, at most ``width`` columns where words allow it."""
    paint = _painter(colour)
    lines: list[str] = []
    lines += _heading(report, width, paint)
    lines += _findings(report, width, paint)
    for title, section in PAGE_SECTIONS:
        lines += _facts(report, title, section, width)
    lines += _measurements(report, width, paint)
    published = baseline_lines(report, width)
    lines += ["", "Beside published figures", *published] if published else []
    lines += _steps("Steps", report.get("steps", []), width, paint)
    lines += _conformance(report, width, paint)
    if report.get("simulated"):
        lines += ["", paint("loud", "SIMULATED: nothing on this page is a measurement of a real NPU.")]
    return "\n".join(lines) + "\n"


def _painter(colour: bool) -> Any:
    def paint(kind: str, text: str) -> str:
        return f"{_COLOURS[kind]}{text}{_RESET}" if colour and kind in _COLOURS else text

    return paint


def _heading(report: dict[str, Any], width: int, paint: Any) -> list[str]:
    tool, run = report.get("tool", {}), report.get("run", {})
    title = f"rknpu-kit {inert(tool.get('version', '?'))} - capability report, level {inert(run.get('level', '?'))}"
    took = f"{inert(run.get('started_at', '?'))}, {inert(run.get('duration_s', '?'))} s"
    lines = [title, took]
    simulation = report.get("simulation")
    if report.get("simulated") and isinstance(simulation, dict):
        lines += [
            "",
            *[paint("loud", line) for line in wrapped(f"SIMULATED: {inert(simulation.get('note'))}", "", width)],
        ]
    if not run.get("complete", True):
        lines += [
            "",
            paint("error", "This run did not end by itself: the report holds what was known by then."),
        ]
    lines += ["", *wrapped(_verdict(report), "", width)]
    return lines


def _verdict(report: dict[str, Any]) -> str:
    counts = {"error": 0, "warning": 0, "info": 0}
    for finding in report.get("findings", []):
        counts[finding.get("severity", "info")] = counts.get(finding.get("severity", "info"), 0) + 1
    number_words = ", ".join(
        f"{count} {word}{'s' if count != 1 else ''}"
        for word, count in (
            ("error", counts["error"]),
            ("warning", counts["warning"]),
            ("note", counts["info"]),
        )
        if count
    )
    rows = report.get("measurements", [])
    exact = sum(1 for row in rows if row.get("checked") == "exact" and row.get("verdict") == "passed")
    wrong = sum(1 for row in rows if row.get("verdict") == "failed")
    measured = f" {exact} of {len(rows)} measured rows proven exact, {wrong} wrong." if rows else ""
    failed = failed_checks(report)
    if failed:
        number_words += f"{', ' if number_words else ''}{failed} conformance check{'s' if failed != 1 else ''} failed"
    return f"Verdict: {number_words or 'nothing wrong was found'}.{measured}"


def _findings(report: dict[str, Any], width: int, paint: Any) -> list[str]:
    lines: list[str] = []
    for finding in report.get("findings", []):
        severity = inert(finding.get("severity"))
        head = f"[{severity}] {inert(finding.get('code'))} "
        first, *rest = wrapped(inert(finding.get("what")), "    ", width, head)
        lines += [first.replace(f"[{severity}]", paint(severity, f"[{severity}]"), 1), *rest]
        lines += wrapped(inert(finding.get("why")), "    ", width)
        for step in finding.get("fix", []):
            lines += wrapped(inert(step), "        ", width, "    do: ")
        if finding.get("evidence"):
            lines += wrapped(inert(finding["evidence"], 300), "          ", width, "    seen: ")
    return ["", "Findings, most likely cause first", *lines] if lines else []


def _facts(report: dict[str, Any], title: str, section: Sequence[tuple[str, str, str]], width: int) -> list[str]:
    facts = report.get("facts", {})
    # On a machine that is no board, what such a machine cannot have is not worth a line.
    terse = (facts.get("soc.is_rockchip") or {}).get("value") is False
    lines: list[str] = []
    for label, key, kind in section:
        if key not in facts or (terse and facts[key].get("value") in (None, [])):
            continue
        for index, text in enumerate(fact_text(facts[key], kind)):
            head = f"  {label if index == 0 else '':<17} "
            lines += wrapped(inert(text), " " * len(head), width, head)
    return ["", title, *lines] if lines else []


def _measurements(report: dict[str, Any], width: int, paint: Any) -> list[str]:
    rows = report.get("measurements", [])
    rates = [row for row in rows if row.get("name") == "gemm_rate" and parameter(row, "series") != "grid"]
    scaling = [row for row in rows if row.get("name") == "core_scaling"]
    dtypes = [row for row in rows if row.get("name") == "dtype_support"]
    mark = "  (SIMULATED)" if report.get("simulated") else ""
    lines: list[str] = []
    if dtypes:
        lines += ["", f"Matmul types the library accepts{mark}", *_dtype_lines(dtypes, width)]
    if rates:
        headers = ("type", "M", "K", "N", "B", "A,C", "quant", "ms/run", "TOPS", "+-%", "proof", "valid")
        align = ("left", *("right",) * 3, *("left",) * 3, *("right",) * 3, "left", "left")
        lines += ["", f"GEMM rate, one core{mark}", *table([_rate_row(row) for row in rates], headers, align)]
    if scaling:
        columns = ("contexts", "TOPS", "+-%", "x one", "proof", "valid")
        sides = (*("right",) * 4, "left", "left")
        base = next((row["median"] for row in scaling if parameter(row, "contexts") == 1 and row.get("median")), None)
        lines += ["", f"Core scaling, one context a core, run together{mark}"]
        lines += table([_scaling_row(row, base) for row in scaling], columns, sides)
    lines += number_tables(rows, mark, width)
    for row in rows:
        if row.get("verdict") == "failed" and row.get("name") != "dtype_support":
            lines += [
                paint("error", line)
                for line in wrapped(f"WRONG: {_name(row)}: {inert(row.get('reason'))}", "  ", width)
            ]
    return lines


_SUPPORT_WORDS = (("passed", "exact"), ("failed", "WRONG"), ("unsupported", "refused"))


def _dtype_lines(rows: list[dict[str, Any]], width: int) -> list[str]:
    """Type codes by verdict: the named ones with their names, the unassigned ones as plain codes."""
    groups: dict[str, list[dict[str, Any]]] = {word: [] for word, _ in _SUPPORT_WORDS}
    for row in rows:
        groups.setdefault(inert(row.get("verdict")), []).append(row)
    lines: list[str] = []
    for verdict, members in groups.items():
        named = [row for row in members if parameter(row, "type_name") not in ("", "unassigned")]
        labels = [f"{parameter(row, 'type')} {parameter(row, 'type_name')}" for row in named]
        codes = [str(parameter(row, "type")) for row in members if row not in named]
        if codes:
            labels.append("unassigned codes " + " ".join(codes))
        if labels:
            head = f"  {dict(_SUPPORT_WORDS).get(verdict, verdict):<10} "
            lines += wrapped(inert(", ".join(labels)), " " * len(head), width, head)
    return lines


def _rate_row(row: dict[str, Any]) -> list[str]:
    run = row.get("evidence", {}).get("run_us") or {}
    run_us = run.get("median")
    return [
        type_words(row),
        *(inert(parameter(row, key)) for key in ("M", "K", "N")),
        *(SHORT.get(str(parameter(row, key)), inert(parameter(row, key))) for key in ("B_layout", "AC_layout")),
        inert(parameter(row, "B_quant")).removeprefix("per_"),
        f"{run_us / 1000:.3f}" if isinstance(run_us, (int, float)) else "-",
        number(row.get("median")),
        spread(row),
        proof(row),
        valid(row),
    ]


def _scaling_row(row: dict[str, Any], base: float | None) -> list[str]:
    median = row.get("median")
    ratio = f"{median / base:.2f}" if isinstance(median, (int, float)) and base else "-"
    return [
        inert(parameter(row, "contexts")),
        number(median),
        spread(row),
        ratio,
        proof(row),
        valid(row),
    ]


def _conformance(report: dict[str, Any], width: int, paint: Any) -> list[str]:
    section = report.get("conformance")
    if not section:
        return []
    targets = {str(target.get("suite")): target for target in targets_of(section)}
    by_suite: dict[str, list[dict[str, Any]]] = {}
    for check in checks_of(report):
        by_suite.setdefault(suite_of(check), []).append(dict(check))
    lines: list[str] = []
    for suite, checks in by_suite.items():
        target = targets.get(suite, {})
        mark = " (SIMULATED)" if target.get("simulated", True) else ""
        lines += _steps(
            f"Conformance of {inert(target.get('target'))}, suite {inert(suite)}{mark}", checks, width, paint
        )
    return lines


def _steps(title: str, steps: Sequence[dict[str, Any]], width: int, paint: Any) -> list[str]:
    lines: list[str] = []
    for step in steps:
        verdict = inert(step.get("verdict"))
        seconds = step.get("duration_s")
        took = f" ({seconds:.1f} s)" if isinstance(seconds, (int, float)) else ""
        text = inert(step.get("covered") if verdict == "passed" else step.get("reason"))
        head = f"  {verdict:<14} {inert(step.get('name')):<15} "
        first, *rest = wrapped(text + took, " " * len(head), width, head)
        kind = "good" if verdict == "passed" else "warning" if verdict in ("skipped", "unsupported") else "error"
        lines += [first.replace(verdict, paint(kind, verdict), 1), *rest]
    return ["", title, *lines] if lines else []


def _name(row: dict[str, Any]) -> str:
    return " ".join(f"{inert(key)}={inert(value)}" for key, value in (row.get("parameters") or {}).items())
