# SPDX-License-Identifier: Apache-2.0
"""How each value of a report was obtained: one entry per fact and per measured row, under an anchor of its own."""

from __future__ import annotations

import re
from dataclasses import dataclass

from reports.page_reading import (
    MAX_RECORDS,
    Record,
    evidence,
    is_valid,
    items,
    number_of,
    parameters,
    record,
    simulated,
    words,
)

_KEY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)*")
OF_THE_MACHINE = "cpu_"
"""Rows whose names start so are measured on the CPUs that the kit runs on, beside a mock as well."""


@dataclass(frozen=True)
class Source:
    """How one value is known. ``kind`` is measured, read, assumed, worked out or unknown; ``lines`` the rest."""

    anchor: str
    title: str
    value: str
    kind: str
    lines: tuple[str, ...]
    method: str = ""


@dataclass(frozen=True)
class Method:
    """The text that explains one kind of measurement, told once."""

    anchor: str
    name: str
    text: str


def fact_anchor(key: str) -> str:
    """The anchor of the fact ``key``: ``fact-`` and the key, or nothing but letters and digits of a foreign one."""
    return f"fact-{key}" if _KEY.fullmatch(key) and len(key) < 100 else f"fact-{re.sub('[^A-Za-z0-9]', '', key)[:60]}"


def row_anchor(index: int) -> str:
    """The anchor of the measured row that stands ``index``-th in the report, from 0."""
    return f"row-{index}"


def fact_sources(report: Record) -> list[Source]:
    """One entry per fact, in the order of the report."""
    found: dict[str, Source] = {}
    for key, fact in list(record(report.get("facts")).items())[:MAX_RECORDS]:
        anchor = fact_anchor(str(key))
        if isinstance(fact, dict) and anchor not in found:
            found[anchor] = _fact_source(anchor, str(key), fact)
    return list(found.values())


def _fact_source(anchor: str, key: str, fact: Record) -> Source:
    unknown = fact.get("value") is None
    lines = [f"from {words(fact.get('source'), 300) or 'nowhere named'}"]
    if fact.get("reason"):
        lines.append(words(fact.get("reason"), 300))
    if fact.get("needs_root"):
        lines.append("root could read it" if unknown else "read as root")
    word = words(fact.get("provenance"), 20)
    kind = "unknown" if unknown else word if word in ("measured", "read", "assumed") else "unknown"
    return Source(anchor, words(key, 100), "no value" if unknown else words(fact.get("value"), 300), kind, tuple(lines))


def row_sources(report: Record) -> tuple[list[Source], list[Method]]:
    """One entry per measured row in the order of the report, and the methods they point to."""
    methods: dict[str, Method] = {}
    sources = []
    for index, row in enumerate(items(report.get("measurements"))):
        if not isinstance(row, dict):
            continue
        text = words(row.get("method"), 1500) or "The report names no method."
        method = methods.setdefault(text, Method(f"method-{len(methods)}", words(row.get("name"), 60), text))
        sources.append(_row_source(index, row, method.anchor, simulated(report)))
    return sources, list(methods.values())


def row_index(report: Record) -> list[tuple[int, Record]]:
    """The measured rows with the numbers that their anchors have."""
    return [(index, row) for index, row in enumerate(items(report.get("measurements"))) if isinstance(row, dict)]


def is_simulated_row(row: Record, report: Record) -> bool:
    """True for a row of a simulated report that is not of the CPUs alone."""
    return simulated(report) and not str(row.get("name")).startswith(OF_THE_MACHINE)


def _row_source(index: int, row: Record, method: str, simulated_report: bool) -> Source:
    name = words(row.get("name"), 60)
    derived = number_of(evidence(row).get("derived_from"))
    median, unit = number_of(row.get("median")), words(row.get("unit"), 20)
    value = f"{median:.6g} {unit}" if median is not None else f"no number: {words(row.get('reason'), 300)}"
    kind = "worked out" if derived is not None else "measured"
    made_up = simulated_report and not name.startswith(OF_THE_MACHINE)
    lines = [*(["on the mock: SIMULATED"] if made_up else []), *_spread_lines(row, unit)]
    if derived is not None:
        lines.append(f"from {derived:.0f} other rows of this report")
    lines.append(f"result judged: {words(row.get('checked'), 20)}, {words(row.get('verdict'), 30)}")
    if is_valid(row):
        lines.append("conditions valid")
    else:
        reasons = items(record(row.get("validity")).get("reasons"))[:6]
        lines.append("conditions not valid: " + ("; ".join(words(reason, 200) for reason in reasons) or "no reason"))
    lines += _condition_lines(row)
    title = f"{name} {_parameter_words(row)}".strip()
    return Source(row_anchor(index), title, value, kind, tuple(lines), method)


def _spread_lines(row: Record, unit: str) -> list[str]:
    samples = [number for number in map(number_of, items(row.get("samples"))) if number is not None]
    mad = number_of(row.get("mad"))
    if len(samples) < 2:
        return []
    spread = f", MAD {mad:.3g} {unit}" if mad is not None else ""
    return [f"median of {len(samples)} samples from {min(samples):.6g} to {max(samples):.6g} {unit}{spread}"]


def _parameter_words(row: Record) -> str:
    pairs = list(parameters(row).items())[:16]
    return " ".join(f"{words(key, 30)}={words(value, 60)}" for key, value in pairs if key != "type_name")


def _condition_lines(row: Record) -> list[str]:
    conditions = record(evidence(row).get("conditions"))
    lines = []
    for key, title in (("npu_clock_hz", "NPU"), ("ddr_clock_hz", "DDR")):
        clock = number_of(record(conditions.get(key)).get("median"))
        if clock is not None:
            lines.append(f"{title} clock {clock / 1e6:.0f} MHz")
    return lines


def unshown(report: Record) -> int:
    """How many measured rows of the report are beyond what a page shows."""
    rows = report.get("measurements")
    return max(0, len(rows) - MAX_RECORDS) if isinstance(rows, list) else 0
