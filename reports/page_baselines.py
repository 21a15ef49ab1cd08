# SPDX-License-Identifier: Apache-2.0
"""A board beside published figures, for a page: each figure in words, with the row that was held against it."""

from __future__ import annotations

from dataclasses import dataclass

from reports.baselines import BaselineRow, Explanation, compare_with_baselines, why_not_compared
from reports.page_groups import UNITS
from reports.page_provenance import row_anchor, row_index
from reports.page_reading import Record, words
from reports.shape import misshapen

_TONES = {"in range": "good", "below": "error", "above": "warning", "differs": "warning"}


@dataclass(frozen=True)
class PublishedRow:
    """One published figure and what this board has. ``anchor`` leads to the measured row; ``why`` are the conditions
    that may explain a difference; ``source`` counts from 1."""

    word: str
    tone: str
    what: str
    here: str
    published: str
    sentence: str
    why: tuple[str, ...]
    source: int
    anchor: str


@dataclass(frozen=True)
class Published:
    """``why_not`` says why nothing was compared; empty where something was. ``sources`` are told once."""

    why_not: str
    rows: tuple[PublishedRow, ...] = ()
    sources: tuple[str, ...] = ()


def published(report: Record) -> Published:
    """Every measurement that has a published figure of its SoC, those out of range first."""
    problem = misshapen(report)
    if problem is not None:
        return Published(f"not every part of the report is of its kind: {words(problem, 200)}.")
    if not report["measurements"]:
        return Published("nothing was measured.")
    why = why_not_compared(report)
    if why is not None:
        return Published(words(why, 300))
    found = compare_with_baselines(report)
    if not found:
        return Published("none of the measurements has a published figure of this SoC.")
    sources = tuple(dict.fromkeys(_source(row) for row in found))
    return Published("", tuple(_row(row, report, sources.index(_source(row)) + 1) for row in found), sources)


def _source(row: BaselineRow) -> str:
    return words(f"{row.source}, {row.date or 'no date'}: {row.conditions}", 400)


def _row(row: BaselineRow, report: Record, source: int) -> PublishedRow:
    asked = ", ".join(f"{words(key, 30)} {words(value, 40)}" for key, value in row.asked.items() if key != "type")
    unit = UNITS.get(row.unit, words(row.unit, 20))
    span = f"{row.low:.4g}" if row.low == row.high else f"{row.low:.4g} to {row.high:.4g}"
    invalid = [f"not valid here: {words('; '.join(row.reasons), 200)}"] if not row.valid else []
    return PublishedRow(
        word=words(row.word, 20),
        tone=_TONES.get(row.word, "warning"),
        what=f"{words(row.name, 60)}: {asked}" if asked else words(row.name, 60),
        here=f"{row.measured:.4g} {unit}",
        published=f"{span} {unit}",
        sentence=words(row.sentence, 300),
        why=(*(_explained(each) for each in row.explanations), *invalid),
        source=source,
        anchor=_anchor(row, report),
    )


def _explained(each: Explanation) -> str:
    return words(f"{each.condition}: {each.leaves} ({each.source})", 400)


def _anchor(row: BaselineRow, report: Record) -> str:
    for index, measured in row_index(report):
        same = measured.get("name") == row.name and measured.get("median") == row.measured
        if same and measured.get("parameters") == row.parameters:
            return row_anchor(index)
    return ""
