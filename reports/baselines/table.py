# SPDX-License-Identifier: Apache-2.0
"""Reads the published figures in this folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from reports.shape import problems

FOLDER = Path(__file__).resolve().parent
SCHEMA = FOLDER.parent / "schema" / "baseline.schema.json"


@dataclass(frozen=True)
class Figure:
    """One published figure, from ``low`` to ``high`` in ``unit``.

    ``parameters`` are those a measurement ``name`` must have to be the same thing. ``measures`` says what limits it
    (npu_compute, npu_memory, cpu_memory, call_cost, limit, llm). No measurement is held against it where ``reference``
    is false.
    """

    name: str
    parameters: dict[str, Any]
    low: float
    high: float
    unit: str
    measures: str
    reference: bool
    note: str | None


@dataclass(frozen=True)
class Baseline:
    """The figures of one source. ``stack`` is None for figures of the CPU and its memory, which need no NPU driver."""

    file: str
    name: str
    source: str
    date: str | None
    soc: tuple[str, ...]
    stack: str | None
    conditions: str
    figures: tuple[Figure, ...]


class BadBaseline(Exception):
    """A baseline file that is not one. The text is fit for the user."""


def read_baseline(path: Path) -> Baseline:
    """The baseline in ``path``. Raises BadBaseline with the first problem."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadBaseline(f"cannot read the baseline {path}: {error}.") from error
    for where, what in problems(document, 1, schema=SCHEMA):
        raise BadBaseline(f"{path} is no baseline: {where or 'the whole'}: {what}.")
    figures = tuple(
        Figure(
            name=row["name"],
            parameters=row["parameters"],
            low=float(row["low"]),
            high=float(row["high"]),
            unit=row["unit"],
            measures=row.get("measures", "limit"),
            reference=row["reference"],
            note=row.get("note"),
        )
        for row in document["rows"]
    )
    for figure in figures:
        if not 0 < figure.low <= figure.high:
            raise BadBaseline(f"{path}: {figure.name}: low {figure.low} and high {figure.high} are no range.")
    return Baseline(
        file=path.name,
        name=document["name"],
        source=document["source"],
        date=document["date"],
        soc=tuple(word.lower() for word in document["soc"]),
        stack=document["stack"],
        conditions=document["conditions"],
        figures=figures,
    )


@lru_cache(maxsize=1)
def load_baselines() -> tuple[Baseline, ...]:
    """Every baseline of the kit, by file name."""
    return tuple(read_baseline(path) for path in sorted(FOLDER.glob("*.json")))
