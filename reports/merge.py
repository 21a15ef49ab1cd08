# SPDX-License-Identifier: Apache-2.0
"""Several reports of one board as one. Raw samples are kept, run by run, so that ``diff`` sees how runs differ. Pure.

Two boards of one model cannot be told apart by a redacted report; two of different models, cores or memory can.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from reports.conformance_section import by_name, checks_of, joined
from reports.contract import Verdict
from reports.diff.facts import VOLATILE, VOLATILE_BELOW
from reports.diff.findings import compare_findings
from reports.diff.rows import COUNTS, row_key

Report = dict[str, Any]
Row = dict[str, Any]

IDENTITY = ("board.model", "board.compatible", "soc.name", "soc.otp_code", "npu.cores", "cpu.present", "kernel.machine")
MEMORY = "memory.total_bytes"
MEMORY_AGREES = 0.02
"""Kernels reserve different parts of the same memory."""
RUNS_AGREE = 0.10
"""Medians of valid runs further apart than this are told as a conflict; their samples are kept all the same."""
_WORST = tuple(
    word.value
    for word in (
        *(Verdict.FAILED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.COULD_NOT_RUN, Verdict.UNSUPPORTED),
        *(Verdict.SKIPPED, Verdict.PASSED),
    )
)
_CHECKED = ("not", "bounded", "exact")
_LEVELS = ("quick", "medium", "long")


class DifferentBoards(Exception):
    """Reports that are not of one board, or not of one library. The text is fit for the user."""


def merge(reports: Sequence[Report], names: Sequence[str]) -> Report:
    """One report of all, in order of time. ``names`` are those of the files, for messages.

    Raises DifferentBoards. What the reports do not agree on stands under ``merged.conflicts``.
    """
    pairs = sorted(zip(reports, names, strict=True), key=lambda pair: str(pair[0]["run"]["started_at"]))
    reports, names = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for report, name in zip(reports[1:], names[1:], strict=True):
        _same_board(reports[0], names[0], report, name)
    newest = reports[-1]
    conflicts: list[dict[str, Any]] = []
    facts = _facts(reports, conflicts)
    rows = _rows(reports, conflicts)
    findings = _findings(reports)
    conformance = _conformance(reports, conflicts)
    runs = [report["run"] for report in reports]
    return {
        **{key: value for key, value in newest.items() if key not in ("merged", "conformance")},
        **conformance,
        "redacted": all(report["redacted"] for report in reports),
        "run": {
            **newest["run"],
            "level": max(
                (run["level"] for run in runs), key=lambda level: _LEVELS.index(level) if level in _LEVELS else -1
            ),
            "started_at": runs[0]["started_at"],
            "ended_at": max(run["ended_at"] for run in runs),
            "duration_s": round(sum(run["duration_s"] for run in runs), 3),
            "complete": all(run["complete"] for run in runs),
            "exit_code": int(any(finding["severity"] == "error" for finding in findings)),
            "library": next((run["library"] for run in reversed(runs) if run.get("library")), None),
        },
        "facts": facts,
        "measurements": rows,
        "findings": findings,
        "steps": _steps(reports),
        "merged": {
            "reports": [
                {"started_at": run["started_at"], "level": run["level"], "seed": run.get("seed")} for run in runs
            ],
            "conflicts": conflicts,
        },
    }


def _value(report: Report, key: str) -> Any:
    fact = report["facts"].get(key)
    return fact["value"] if fact else None


def _same_board(one: Report, one_name: str, other: Report, other_name: str) -> None:
    def refuse(what: str) -> DifferentBoards:
        return DifferentBoards(f"{one_name} and {other_name} are not of one board: {what}. Use diff or fleet.")

    if one["simulated"] != other["simulated"]:
        raise refuse("one of them is simulated")
    if one["simulated"] and any(
        one["simulation"].get(key) != other["simulation"].get(key) for key in ("persona", "timing")
    ):
        raise refuse("the mock had another persona or another timing")
    known = 0
    for key in IDENTITY:
        values = _value(one, key), _value(other, key)
        if None not in values:
            known += 1
            if values[0] != values[1]:
                raise refuse(f"{key} is {values[0]} and {values[1]}")
    sizes = _value(one, MEMORY), _value(other, MEMORY)
    if (
        all(isinstance(size, (int, float)) and size > 0 for size in sizes)
        and abs(sizes[1] / sizes[0] - 1) > MEMORY_AGREES
    ):
        raise refuse(f"{MEMORY} is {sizes[0]} and {sizes[1]}")
    if not known:
        raise refuse("nothing that tells boards apart is known in both")
    libraries = [(report["run"].get("library") or {}) for report in (one, other)]
    if all(libraries) and any(libraries[0].get(key) != libraries[1].get(key) for key in ("version", "sha256")):
        words = " and ".join(str(library.get("version")) for library in libraries)
        raise DifferentBoards(f"{one_name} and {other_name} called different libraries ({words}). Use diff.")


def _facts(reports: Sequence[Report], conflicts: list[dict[str, Any]]) -> dict[str, Any]:
    """Of each fact the newest that is known; what is unknown everywhere keeps its newest reason."""
    merged: dict[str, Any] = {}
    for key in dict.fromkeys(key for report in reversed(reports) for key in report["facts"]):
        seen = [report["facts"][key] for report in reversed(reports) if key in report["facts"]]
        known = [fact for fact in seen if fact["value"] is not None]
        merged[key] = (known or seen)[0]
        values = [fact["value"] for fact in reversed(known)]
        if any(value != values[0] for value in values) and key not in VOLATILE and not key.startswith(VOLATILE_BELOW):
            conflicts.append({"of": "fact", "name": key, "values": values})
    return dict(sorted(merged.items()))


def _rows(reports: Sequence[Report], conflicts: list[dict[str, Any]]) -> list[Row]:
    groups: dict[str, list[Row]] = {}
    for report in reports:
        for row in report["measurements"]:
            groups.setdefault(row_key(row), []).append(row)
    return [_row(rows, conflicts) for rows in groups.values()]


def _row(rows: list[Row], conflicts: list[dict[str, Any]]) -> Row:
    """One row of several runs: the worst verdict; samples of the valid ones, or of all where none is valid."""
    if len(rows) == 1:
        return rows[0]
    verdict = min((row["verdict"] for row in rows), key=lambda word: _WORST.index(word) if word in _WORST else 0)
    worst = next(row for row in rows if row["verdict"] == verdict)
    if len({row["verdict"] for row in rows}) > 1:
        _conflict(conflicts, rows, [row["verdict"] for row in rows])
    if len({row["unit"] for row in rows}) > 1:
        _conflict(conflicts, rows, [row["unit"] for row in rows])
        return rows[-1]
    numbered = [row for row in rows if row["median"] is not None]
    if verdict != "passed" or not numbered:
        return {
            **worst,
            "median": None,
            "mad": None,
            "samples": [],
            "reason": worst["reason"] or "no number in any run",
        }
    used = [row for row in numbered if row["validity"]["valid"]] or numbered
    if used[0]["unit"] in COUNTS and any(row["median"] != used[0]["median"] for row in used):
        _conflict(conflicts, rows, [row["median"] for row in used])
        return min(used, key=lambda row: float(row["median"]))
    medians = [float(row["median"]) for row in used]
    if max(medians) > (1 + RUNS_AGREE) * min(medians):
        _conflict(conflicts, rows, medians)
    runs = [[value for value in row["samples"] if value is not None] or [row["median"]] for row in used]
    samples = [value for run in runs for value in run]
    center = median(samples)
    newest = used[-1]
    return {
        **newest,
        "median": center,
        "mad": median(abs(value - center) for value in samples),
        "samples": samples,
        "checked": min(
            (row["checked"] for row in used), key=lambda word: _CHECKED.index(word) if word in _CHECKED else 0
        ),
        "validity": {
            "valid": all(row["validity"]["valid"] for row in used),
            "reasons": list(dict.fromkeys(reason for row in used for reason in row["validity"]["reasons"])),
        },
        "evidence": {
            **newest["evidence"],
            "samples_of_runs": [len(run) for run in runs],
            "runs_left_out": len(rows) - len(used),
        },
    }


def _conflict(conflicts: list[dict[str, Any]], rows: list[Row], values: list[Any]) -> None:
    conflicts.append({"of": "measurement", "name": row_key(rows[0]), "values": values})


def _findings(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Every finding of any run once, in the newest words."""
    merged: list[dict[str, Any]] = []
    for report in reversed(reports):
        merged += [change.finding for change in compare_findings(merged, report["findings"]) if change.word == "came"]
    order = {"error": 0, "warning": 1, "info": 2}
    return sorted(merged, key=lambda each: (order.get(each["severity"], 0), each["rank"], each["code"]))


def _conformance(reports: Sequence[Report], conflicts: list[dict[str, Any]]) -> dict[str, Any]:
    """The section of the newest run of each suite; a verdict that changed meanwhile is told as a conflict."""
    section: dict[str, Any] | None = None
    verdicts: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        if checks_of(report):
            section = joined(section, report["conformance"])
        for key, check in by_name(checks_of(report)).items():
            verdicts.setdefault(key, []).append(str(check["verdict"]))
    for (suite, name), values in verdicts.items():
        if len(set(values)) > 1:
            conflicts.append({"of": "conformance", "name": f"{suite} {name}", "values": values})
    return {} if section is None else {"conformance": section}


def _steps(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Steps by name: how the worst run of each ended, with the time of all."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for report in reports:
        for step in report["steps"]:
            groups.setdefault(step["name"], []).append(step)
    merged = []
    for steps in groups.values():
        worst = min(steps, key=lambda step: _WORST.index(step["verdict"]) if step["verdict"] in _WORST else 0)
        merged.append({**worst, "duration_s": round(sum(step["duration_s"] for step in steps), 6)})
    return merged
