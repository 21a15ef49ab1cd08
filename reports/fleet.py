# SPDX-License-Identifier: Apache-2.0
"""Many boards side by side: one line each, the rows that stand out, and everything as flat records. Pure."""

from __future__ import annotations

import csv
import io
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from reports.diff.page import row_words
from reports.diff.rows import FLOOR, row_key
from reports.text import inert

Report = dict[str, Any]

FEWEST_BOARDS = 5
"""With fewer a board cannot stand out: their median and spread are made of it."""
STANDS_OUT = 3.5
"""Of the robust z (0.6745 times the distance from the median over the MAD), after Iglewicz and Hoaglin."""


@dataclass(frozen=True)
class Board:
    """A report with the name of the file it came from."""

    file: str
    report: Report

    @staticmethod
    def slim(file: str, report: Report) -> Board:
        """The same without what a fleet does not look at, so that a thousand boards fit into memory."""
        keep = ("name", "parameters", "unit", "median", "mad", "samples", "checked", "verdict", "validity")
        rows = [{key: row[key] for key in keep} for row in report["measurements"]]
        return Board(file, {**report, "measurements": rows})

    def fact(self, key: str) -> Any:
        fact = self.report["facts"].get(key)
        return fact["value"] if fact else None

    @property
    def group(self) -> tuple[str, bool]:
        """Boards are compared within one SoC, and simulated ones among themselves."""
        return str(self.fact("soc.name")), self.report["simulated"]


@dataclass(frozen=True)
class Outlier:
    """A valid measurement that stands out among those of ``boards`` boards of one SoC. ``typical`` is their median."""

    file: str
    name: str
    parameters: dict[str, Any]
    unit: str
    value: float
    typical: float
    z: float
    boards: int


COLUMNS: tuple[tuple[str, type], ...] = (
    *(("file", str), ("board", str), ("soc", str), ("kernel", str), ("driver", str), ("library", str)),
    *(("kit", str), ("level", str), ("started_at", str), ("simulated", bool)),
    *(("name", str), ("type_name", str), ("M", int), ("K", int), ("N", int), ("contexts", int), ("parameters", str)),
    *(("unit", str), ("median", float), ("mad", float), ("samples", int), ("checked", str), ("verdict", str)),
    *(("valid", bool), ("reasons", str), ("z", float)),
)
"""Columns of a flat record and their types, the same for every line, any of them null: fit for Parquet as they are."""


def outliers(boards: Sequence[Board]) -> list[Outlier]:
    """What stands out, farthest first."""
    groups: dict[tuple[Any, ...], list[tuple[Board, dict[str, Any]]]] = defaultdict(list)
    for board in boards:
        for row in board.report["measurements"]:
            if row["median"] is not None and row["validity"]["valid"] and row["verdict"] == "passed":
                groups[(board.group, row_key(row), row["unit"])].append((board, row))
    found = []
    for members in groups.values():
        if len({board.file for board, _ in members}) < FEWEST_BOARDS:
            continue
        values = [float(row["median"]) for _, row in members]
        center = median(values)
        spread = max(median(abs(value - center) for value in values), FLOOR / 2 * abs(center), 1e-12)
        for board, row in members:
            z = 0.6745 * (float(row["median"]) - center) / spread
            if abs(z) > STANDS_OUT:
                words = (board.file, row["name"], row["parameters"], row["unit"])
                found.append(Outlier(*words, float(row["median"]), center, z, len(members)))
    return sorted(found, key=lambda each: -abs(each.z))


def records(boards: Sequence[Board]) -> list[dict[str, Any]]:
    """One flat record for each measurement of each board, with COLUMNS as keys."""
    z = {(each.file, row_key({"name": each.name, "parameters": each.parameters})): each.z for each in outliers(boards)}
    return [
        _record(board, row, z.get((board.file, row_key(row))))
        for board in boards
        for row in board.report["measurements"]
    ]


def _record(board: Board, row: dict[str, Any], z: float | None) -> dict[str, Any]:
    run, parameters = board.report["run"], row["parameters"]
    values = {
        "file": board.file,
        "board": board.fact("board.model"),
        "soc": board.fact("soc.name"),
        "kernel": board.fact("kernel.release"),
        "driver": board.fact("npu.driver_version"),
        "library": (run.get("library") or {}).get("version"),
        "kit": board.report["tool"]["version"],
        "level": run["level"],
        "started_at": run["started_at"],
        "simulated": board.report["simulated"],
        **{key: parameters.get(key) for key in ("type_name", "M", "K", "N", "contexts")},
        "parameters": json.dumps(parameters, sort_keys=True),
        **{key: row[key] for key in ("name", "unit", "median", "mad", "checked", "verdict")},
        "samples": len(row["samples"]),
        "valid": row["validity"]["valid"],
        "reasons": "; ".join(row["validity"]["reasons"]),
        "z": z,
    }
    return {name: _typed(values[name], kind) for name, kind in COLUMNS}


def _typed(value: Any, kind: type) -> Any:
    """``value`` if it is of its column's type, or can be without loss; else null. Text loses control characters."""
    if value is None:
        return None
    if kind is str:
        return inert(value)
    if kind is float:
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if kind is int and (isinstance(value, bool) or not -(2**63) <= (value if isinstance(value, int) else 0) < 2**63):
        return None
    return value if isinstance(value, kind) else None


def as_json_lines(boards: Sequence[Board]) -> str:
    """Every record as one line of JSON."""
    return "".join(json.dumps(record, allow_nan=False) + "\n" for record in records(boards))


def as_csv(boards: Sequence[Board]) -> str:
    """Every record as CSV (RFC 4180). No cell is taken for a formula by a spreadsheet."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow([name for name, _ in COLUMNS])
    for record in records(boards):
        writer.writerow([cell(value) for value in record.values()])
    return out.getvalue()


def cell(value: Any) -> Any:
    """A CSV cell. Text that a spreadsheet could run as a formula gets an apostrophe in front; numbers stay numbers."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.lstrip()[:1] in ("=", "+", "-", "@", "|", "%"):
        return f"'{value}"
    return value


_SHOWN = (
    ("int8 TOPS", "gemm_ceiling", "int8_int8_int32", "tops"),
    ("all cores", "core_scaling", "int8_int8_int32", "tops"),
    ("stream GB/s", "npu_stream", "int8_int8_int32", "gbps"),
)


def board_cells(boards: Sequence[Board]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Headers and cells of the table with one line for each board. A figure is the highest valid one of its kind."""
    headers = ("file", "board", "SoC", "driver", "errors", "warnings", *(name for name, *_ in _SHOWN), "")
    cells = []
    for board in boards:
        severities = [finding["severity"] for finding in board.report["findings"]]
        figures = [_highest(board, *what) for _, *what in _SHOWN]
        words = [inert(board.fact(key) or "-", 30) for key in ("board.model", "soc.name", "npu.driver_version")]
        counts = [str(severities.count(word)) for word in ("error", "warning")]
        mark = "SIMULATED" if board.report["simulated"] else ""
        cells.append([inert(board.file, 40), *words, *counts, *figures, mark])
    return headers, cells


def _highest(board: Board, name: str, type_name: str, unit: str) -> str:
    values = [
        float(row["median"])
        for row in board.report["measurements"]
        if row["name"] == name
        and row["unit"] == unit
        and row["parameters"].get("type_name") == type_name
        and row["median"] is not None
        and row["validity"]["valid"]
    ]
    return f"{max(values):.4g}" if values else "-"


def outlier_words(each: Outlier) -> str:
    """An outlier in one sentence."""
    what = row_words(each.name, each.parameters)
    return (
        f"{inert(each.file, 60)}: {what} is {each.value:.4g} {inert(each.unit, 20)}, the median of {each.boards} "
        f"boards is {each.typical:.4g} (robust z {each.z:+.1f})"
    )
