# SPDX-License-Identifier: Apache-2.0
"""Whether a report is one: its shape by the schema, and whether what it says agrees with itself. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from statistics import median
from typing import Any

from reports.catalogue import CATALOGUE
from reports.diff.rows import row_key
from reports.redact import Names, redact
from reports.shape import problems

Report = dict[str, Any]

UNITS = frozenset(
    (
        "tops",
        "gops",
        "gbps",
        "us",
        "ms",
        "s",
        "mhz",
        "share",
        "elements",
        "bytes",
        "fds",
        "verdict",
        "tok/s",
        "contexts",
    )
)
DIGITS = 1e-6
"""Relative agreement of a median with its samples: rows are printed with nine digits."""
NUMBER_SUFFIXES = ("_hz", "_bytes", "_gbps", "_us", "_uv", "_percent", "_c", "_mtps", "_bits", "_s")


@dataclass(frozen=True)
class Flaw:
    """``level``: error (the report must not be used as it is) or warning; ``where`` is a JSON pointer."""

    level: str
    where: str
    what: str


def validate(report: Report) -> list[Flaw]:
    """Every flaw found, errors first. A report without a flaw of level error may be believed as far as it goes."""
    flaws = [Flaw("error", where, what) for where, what in problems(report)]
    if not flaws:  # the checks below rely on the shape
        flaws = [flaw for check in _CHECKS for flaw in check(report)]
    return sorted(flaws, key=lambda flaw: flaw.level != "error")


def _rows(report: Report) -> Iterator[Flaw]:
    for index, row in enumerate(report["measurements"]):
        where = f"/measurements/{index}"
        if row["unit"] not in UNITS:
            yield Flaw("warning", f"{where}/unit", f"{row['unit']!r} is no unit of this kit")
        if row["verdict"] != "passed" and row["median"] is not None:
            yield Flaw("error", f"{where}/median", f"a number though the row ended as {row['verdict']}")
        if row["checked"] == "not" and row["median"] is not None:
            yield Flaw("warning", f"{where}/checked", "a number whose output nobody compared")
        if row["validity"]["valid"] and row["validity"]["reasons"]:
            yield Flaw("warning", f"{where}/validity", "valid, and yet there are reasons against it")
        yield from _numbers(row, where)


def _numbers(row: dict[str, Any], where: str) -> Iterator[Flaw]:
    samples = [value for value in row["samples"] if value is not None]
    if len(samples) < len(row["samples"]):
        yield Flaw("warning", f"{where}/samples", f"{len(row['samples']) - len(samples)} samples are null")
    if row["median"] is None:
        if samples:
            yield Flaw("error", f"{where}/samples", "samples without a median")
        if row["mad"] is not None:
            yield Flaw("error", f"{where}/mad", "a deviation without a median")
        return
    if not samples:
        yield Flaw("warning", f"{where}/samples", "a median without samples: nothing shows how it came about")
        return
    if not _agree(median(samples), row["median"]):
        yield Flaw("error", f"{where}/median", f"{row['median']} where the samples have {median(samples)}")
    elif row["mad"] is not None:
        mad = median(abs(value - row["median"]) for value in samples)
        if not math.isclose(mad, row["mad"], rel_tol=1e-3, abs_tol=DIGITS * abs(row["median"])):
            yield Flaw("error", f"{where}/mad", f"{row['mad']} where the samples have {mad}")


def _agree(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=DIGITS, abs_tol=1e-12)


def _twice(report: Report) -> Iterator[Flaw]:
    for name, keys in (
        ("measurements", [row_key(row) for row in report["measurements"]]),
        ("steps", [step["name"] for step in report["steps"]]),
        ("findings", [f"{finding['code']} {finding['what']}" for finding in report["findings"]]),
    ):
        for key, count in Counter(keys).items():
            if count > 1:
                level = "error" if name == "measurements" else "warning"
                yield Flaw(level, f"/{name}/{keys.index(key)}", f"stands {count} times: {key}")


def _simulated(report: Report) -> Iterator[Flaw]:
    library = report["run"].get("library") or {}
    mock = library.get("mock") or "(mock of rknpu-kit)" in str(library.get("version"))
    if mock and not report["simulated"]:
        yield Flaw("error", "/simulated", "false, though the library was the mock: these are no figures of silicon")
    if report["simulated"] and library and not mock:
        yield Flaw("error", "/simulated", "true, though the library was not the mock")


def _findings(report: Report) -> Iterator[Flaw]:
    errors = 0
    for index, finding in enumerate(report["findings"]):
        where = f"/findings/{index}"
        entry = CATALOGUE.get(finding["code"])
        errors += finding["severity"] == "error"
        if entry is None:
            yield Flaw("warning", f"{where}/code", f"{finding['code']} is no code of this kit; a newer one may know it")
        elif entry.severity.value != finding["severity"]:
            text = f"{finding['severity']}, where the catalogue has {entry.severity.value} for {finding['code']}"
            yield Flaw("warning", f"{where}/severity", text)
    code, complete = report["run"]["exit_code"], report["run"]["complete"]
    if complete and code in (0, 1) and code != bool(errors):
        yield Flaw("error", "/run/exit_code", f"{code} with {errors} findings of severity error")


def _times(report: Report) -> Iterator[Flaw]:
    run = report["run"]
    try:
        ends = [
            datetime.strptime(run[key], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
            for key in ("started_at", "ended_at")
        ]
    except ValueError:
        yield Flaw("error", "/run/started_at", "no such date")
        return
    seconds = (ends[1] - ends[0]).total_seconds()
    if seconds < 0:
        yield Flaw("warning", "/run/ended_at", "before the start: the clock was set while the run went on")
    elif abs(seconds - run["duration_s"]) > max(2.0, 0.02 * seconds) and "merged" not in report:
        yield Flaw("warning", "/run/duration_s", f"{run['duration_s']} s, and {seconds:.1f} s by the clock")


def _facts(report: Report) -> Iterator[Flaw]:
    for key, fact in report["facts"].items():
        value = fact["value"]
        if key.endswith(NUMBER_SUFFIXES) and isinstance(value, (str, bool)):
            yield Flaw("warning", f"/facts/{key}/value", f"{value!r}, where the key names a unit")


def _personal(report: Report) -> Iterator[Flaw]:
    """Shapes of personal data in a report that says it has none. Names cannot be known here."""
    if not report["redacted"]:
        return
    clean = redact(report, Names())
    for where in _differences(report, clean, ""):
        yield Flaw("warning", where, "looks like personal data; rknpu-report redact takes it out")


def _differences(one: Any, other: Any, where: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        if list(one) != list(other):
            yield where
            return
        for key in one:
            yield from _differences(one[key], other[key], f"{where}/{key}")
    elif isinstance(one, list) and isinstance(other, list):
        for index, (item, twin) in enumerate(zip(one, other, strict=True)):
            yield from _differences(item, twin, f"{where}/{index}")
    elif one != other:
        yield where


_CHECKS: Sequence[Callable[[Report], Iterator[Flaw]]] = (
    *(_rows, _twice, _simulated, _findings, _times, _facts, _personal),
)
