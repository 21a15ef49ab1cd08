# SPDX-License-Identifier: Apache-2.0
"""The terminal section that sets a board beside published figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.baselines.compare import BaselineRow, compare_with_baselines, why_not_compared
from reports.baselines.table import Baseline
from reports.diff.page import row_words
from reports.text import inert, table, wrapped


def baseline_lines(report: dict[str, Any], width: int, baselines: Sequence[Baseline] | None = None) -> list[str]:
    """The section's lines without its title; empty where nothing was measured that a figure could be held against.

    ``baselines``: those of the kit, if not said.
    """
    if not report.get("measurements"):
        return []
    why = why_not_compared(report)
    if why is not None:
        return wrapped(f"Not compared: {inert(why)}", "  ", width)
    rows = compare_with_baselines(report, baselines)
    if not rows:
        return ["  None of the measurements here has a published figure of this SoC."]
    cells = [
        [
            row.word,
            row_words(row.name, row.asked),
            f"{row.measured:.4g}",
            f"{row.low:.4g}" if row.low == row.high else f"{row.low:.4g}-{row.high:.4g}",
            inert(row.unit),
            "yes" if row.valid else "no",
        ]
        for row in rows
    ]
    sides = ("left", "left", "right", "right", "left", "left")
    lines = ["  " + line for line in table(cells, ("", "measurement", "here", "published", "unit", "valid"), sides)]
    for row in rows:
        if row.word != "in range":
            lines += _told(row, width)
    sources = dict.fromkeys((f"{row.source}, {row.date or 'no date'}: {row.conditions}") for row in rows)
    for text in sources:
        lines += wrapped(inert(text), "      ", width, "  from ")
    return lines


def _told(row: BaselineRow, width: int) -> list[str]:
    lines = wrapped(f"{row_words(row.name, row.asked)}: {inert(row.sentence)}.", "    ", width, "  ")
    for each in row.explanations:
        lines += wrapped(f"{inert(each.condition)}: {each.leaves} ({each.source})", "      ", width, "    - ")
    if not row.valid:
        lines += wrapped(f"not valid here: {inert('; '.join(row.reasons), 200)}", "      ", width, "    - ")
    return lines
