# SPDX-License-Identifier: Apache-2.0
"""A report in the Prometheus text format, for the textfile collector of node_exporter.

Metrics are ``rknpu_probe_*`` gauges, and ``rknpu_conformance_check`` where the conformance suite was run. A measurement
keeps its unit as a label: one metric name for all of them, so that a rule written once holds for rows to come. Rows
without a number have no sample, never a zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Any

from reports.conformance_section import UNTOLD, checks_of, suite_of
from reports.diff.page import row_words
from reports.text import inert

Sample = tuple[Mapping[str, object], float]

_INFO_FACTS = (
    ("board", "board.model"),
    ("soc", "soc.name"),
    ("kernel", "kernel.release"),
    ("driver", "npu.driver_version"),
    ("stack", "npu.stack"),
)
_LABEL = re.compile(r"[^a-zA-Z0-9_]")


def render_prometheus(report: dict[str, Any]) -> str:
    """The whole file. Label values are printable ASCII with backslash, quote and line end escaped."""
    lines: list[str] = []
    for name, text, samples in (
        ("info", "What was probed, and with which version of the kit.", _info(report)),
        ("simulated", "1 when the mock answered in place of an NPU: no figure is of silicon.", _simulated(report)),
        ("run_end_timestamp_seconds", "End of the run, seconds since the epoch.", _end(report)),
        ("run_duration_seconds", "How long the run took.", iter([({}, float(report["run"]["duration_s"]))])),
        ("run_complete", "1 when the run ended by itself.", iter([({}, float(report["run"]["complete"]))])),
        ("findings", "Number of findings by severity.", _counts(report)),
        ("finding", "1 for each finding code that was reported.", _findings(report)),
        ("fact", "Facts that are numbers.", _facts(report)),
        ("measurement", "Median of a measurement, in the unit of its label.", _measurements(report)),
        ("measurement_valid", "1 when the conditions allow the measurement to be used.", _validity(report)),
    ):
        lines += _metric(f"rknpu_probe_{name}", text, samples)
    told = "1 for a check of the conformance suite that passed, 0 for one that did not; none where it is not offered."
    lines += _metric("rknpu_conformance_check", told, _checks(report))
    return "\n".join(lines) + "\n"


def _metric(name: str, text: str, samples: Iterator[Sample]) -> list[str]:
    """The lines of one metric. A series may stand once only, or the collector drops the whole file."""
    series: dict[str, str] = {}
    for labels, value in samples:
        inside = ",".join(f'{_LABEL.sub("_", key)}="{escaped(word)}"' for key, word in labels.items())
        series.setdefault(f"{name}{{{inside}}}" if inside else name, f"{value:.12g}")
    if not series:
        return []
    return [f"# HELP {name} {text}", f"# TYPE {name} gauge", *(f"{key} {value}" for key, value in series.items())]


def escaped(value: object) -> str:
    """A label value: one line of printable ASCII, backslash and quote escaped."""
    return inert(value, 700).replace("\\", "\\\\").replace('"', '\\"')


def _value(report: dict[str, Any], key: str) -> Any:
    fact = report["facts"].get(key)
    return fact["value"] if fact else None


def _info(report: dict[str, Any]) -> Iterator[Sample]:
    labels = {label: _value(report, key) or "" for label, key in _INFO_FACTS}
    library = report["run"].get("library") or {}
    labels |= {
        "library": library.get("version") or "",
        "kit": report["tool"]["version"],
        "level": report["run"]["level"],
    }
    yield labels, 1


def _simulated(report: dict[str, Any]) -> Iterator[Sample]:
    yield {}, float(report["simulated"])


def _end(report: dict[str, Any]) -> Iterator[Sample]:
    try:
        end = datetime.strptime(report["run"]["ended_at"], "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return
    yield {}, end.timestamp()


def _counts(report: dict[str, Any]) -> Iterator[Sample]:
    for severity in ("error", "warning", "info"):
        yield {"severity": severity}, sum(finding["severity"] == severity for finding in report["findings"])


def _findings(report: dict[str, Any]) -> Iterator[Sample]:
    for finding in report["findings"]:
        yield {"code": finding["code"], "severity": finding["severity"]}, 1


def _facts(report: dict[str, Any]) -> Iterator[Sample]:
    for key, fact in report["facts"].items():
        value = fact["value"]
        if isinstance(value, (int, float)):
            yield {"key": key}, float(value)


def _row_labels(row: dict[str, Any]) -> dict[str, object]:
    return {"name": row["name"], "row": row_words(row["name"], row["parameters"], full=True), "unit": row["unit"]}


def _measurements(report: dict[str, Any]) -> Iterator[Sample]:
    for row in report["measurements"]:
        if row["median"] is not None:
            yield {**_row_labels(row), "checked": row["checked"]}, float(row["median"])


def _checks(report: dict[str, Any]) -> Iterator[Sample]:
    for check in checks_of(report):
        if check["verdict"] not in UNTOLD:
            yield {"name": check["name"], "suite": suite_of(check)}, float(check["verdict"] == "passed")


def _validity(report: dict[str, Any]) -> Iterator[Sample]:
    for row in report["measurements"]:
        if row["median"] is not None:
            yield _row_labels(row), float(row["validity"]["valid"])
