# SPDX-License-Identifier: Apache-2.0
"""The matrix of matmul types: each type code by layout and shape, in a word and a tone."""

from __future__ import annotations

from dataclasses import dataclass

from reports.page_groups import Cell
from reports.page_provenance import row_anchor, row_index
from reports.page_reading import Record, evidence, items, parameters, record, words

_WORDS = {
    "passed": ("exact", "good"),
    "failed": ("WRONG", "error"),
    "unsupported": ("refused", "plain"),
    "crashed": ("crashed", "error"),
    "timed-out": ("timed out", "error"),
}
_MOST_TRIALS = 8


@dataclass(frozen=True)
class TypeMatrix:
    """``columns`` are the trials, ``rows`` (type, cells); ``unassigned`` the codes that nobody has named."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, tuple[Cell, ...]], ...]
    unassigned: str


def type_matrix(report: Record) -> TypeMatrix | None:
    """The ``dtype_support`` rows; None where there are none."""
    found = [(index, row) for index, row in row_index(report) if row.get("name") == "dtype_support"]
    if not found:
        return None
    trials = [[record(trial) for trial in items(evidence(row).get("trials"))[:_MOST_TRIALS]] for _, row in found]
    columns = tuple(dict.fromkeys(_column(trial, tried) for tried in trials for trial in tried))[:_MOST_TRIALS]
    rows, codes = [], []
    for (index, row), tried in zip(found, trials, strict=True):
        name, code = words(parameters(row).get("type_name"), 60), words(parameters(row).get("type"), 10)
        if name in ("", "unassigned") and row.get("verdict") == "unsupported":
            codes.append(code)
            continue
        by_column = {_column(trial, tried): _word(trial.get("verdict")) for trial in tried}
        title, tone = _word(row.get("verdict"))
        cells = tuple(Cell(*_spread(by_column.get(column))) for column in columns)
        verdict = Cell(title, row_anchor(index), tone)
        rows.append((Cell(f"{code} {name}".strip()), (verdict, *cells)))
    return TypeMatrix(("verdict", *columns), tuple(rows), " ".join(codes))


def _column(trial: Record, tried: list[Record]) -> str:
    """Smallest or larger shape, with the layout: sides of the smallest legal shape differ from type to type."""
    sizes = [_size(other) for other in tried]
    larger = bool(sizes) and _size(trial) > 2 * min(sizes)
    return f"{'larger' if larger else 'smallest'}, {words(trial.get('layout'), 20) or '?'}"


def _size(trial: Record) -> int:
    sides = [trial.get(side) for side in ("M", "K", "N")]
    numbers = [side for side in sides if isinstance(side, int) and not isinstance(side, bool) and 0 < side < 10**6]
    return sum(numbers)


def _word(verdict: object) -> tuple[str, str]:
    return _WORDS.get(str(verdict), (words(verdict, 20) or "-", "warning"))


def _spread(word: tuple[str, str] | None) -> tuple[str, str, str]:
    return ("-", "", "plain") if word is None else (word[0], "", word[1])
