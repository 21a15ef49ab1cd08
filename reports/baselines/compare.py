# SPDX-License-Identifier: Apache-2.0
"""A report beside the published figures of its SoC: what is out of range, and which condition probably explains it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reports.baselines.gap import Explanation, explanations
from reports.baselines.table import Baseline, Figure, load_baselines
from reports.diff.rows import LOWER_IS_BETTER

TOLERANCE = 0.10
"""A figure of one board holds for another within this: the layout of code alone moves speeds by 10 percent
(unimatrix099/rk-llama.cpp docs)."""


@dataclass(frozen=True)
class BaselineRow:
    """One measurement of a report beside one published figure. ``asked`` are the figure's own parameters.

    ``word``: in range, below, above (in speed: a time that is too long is below), differs (a limit). ``share`` is this
    board's speed over the nearest end of the published range; 1.0 in it. ``explained`` is the share that the known
    conditions leave when all of them act, lowest and highest; None when none is known. ``valid`` is the row's own.
    """

    baseline: str
    source: str
    date: str | None
    conditions: str
    name: str
    asked: dict[str, Any]
    parameters: dict[str, Any]
    unit: str
    low: float
    high: float
    measured: float
    share: float
    word: str
    valid: bool
    reasons: tuple[str, ...]
    note: str | None
    explanations: tuple[Explanation, ...]
    explained: tuple[float, float] | None

    @property
    def sentence(self) -> str:
        """What to make of it, in one sentence."""
        if self.word == "in range":
            return "as published"
        if self.word == "differs":
            return "another limit than published: another driver or runtime"
        if self.word == "above":
            return "faster than published: conditions there were worse, or this row measures something else"
        if not self.explanations:
            return "slower than published, and no condition of this run explains it"
        first = self.explanations[0]
        if self.explained and self.explained[0] <= self.share * (1 + TOLERANCE):
            return f"slower than published; probably: {first.condition}"
        known = f", which explains {1 - self.explained[0]:.0%} of {1 - self.share:.0%}" if self.explained else ""
        return f"slower than published; partly perhaps: {first.condition}{known}"

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sentence": self.sentence}


def why_not_compared(report: dict[str, Any]) -> str | None:
    """Why a report is held against no published figure, or None where it is."""
    if report.get("simulated"):
        return "SIMULATED: figures of the mock are not compared with figures of silicon."
    soc = _soc(report)
    if soc is None:
        return "the SoC is unknown, so no published figure is known to apply."
    if not any(soc in baseline.soc for baseline in load_baselines()):
        return f"no published figures of {soc} are known to this kit."
    return None


def compare_with_baselines(report: dict[str, Any], baselines: Sequence[Baseline] | None = None) -> list[BaselineRow]:
    """Every measurement that has a published figure, those that are out of range first. Empty for simulated reports."""
    if why_not_compared(report) is not None and (baselines is None or report.get("simulated")):
        return []
    soc, stack = _soc(report), _stack(report)
    rows = []
    for baseline in baselines if baselines is not None else load_baselines():
        if soc not in baseline.soc or (baseline.stack is not None and baseline.stack != stack):
            continue
        for figure in baseline.figures:
            best = _best(figure, report) if figure.reference else None
            if best is not None:
                rows.append(_row(report, baseline, figure, best))
    order = ("below", "differs", "above", "in range")
    return sorted(rows, key=lambda row: (order.index(row.word), row.share))


def _soc(report: dict[str, Any]) -> str | None:
    value = ((report.get("facts") or {}).get("soc.name") or {}).get("value")
    return value.lower() if isinstance(value, str) and value else None


def _stack(report: dict[str, Any]) -> str | None:
    value = ((report.get("facts") or {}).get("npu.stack") or {}).get("value")
    return value if isinstance(value, str) else None


def _best(figure: Figure, report: dict[str, Any]) -> dict[str, Any] | None:
    """The fastest valid measurement that is what the figure is of; the fastest invalid one where none is valid."""
    fits = [
        row
        for row in _measured(report)
        if row["name"] == figure.name
        and row["unit"] == figure.unit
        and all(row["parameters"].get(key) == value for key, value in figure.parameters.items())
    ]
    sign = -1 if figure.unit in LOWER_IS_BETTER else 1
    return max(fits, key=lambda row: (bool(row["validity"]["valid"]), sign * row["median"]), default=None)


def _measured(report: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for row in report.get("measurements") or []:
        if row.get("verdict") == "passed" and row.get("median") is not None and row["median"] > 0:
            yield row


def _row(report: dict[str, Any], baseline: Baseline, figure: Figure, row: dict[str, Any]) -> BaselineRow:
    measured = float(row["median"])
    share = _share(figure, measured)
    if figure.measures == "limit":
        word = "in range" if share == 1.0 else "differs"
    else:
        word = "below" if share < 1 - TOLERANCE else "above" if share > 1 + TOLERANCE else "in range"
    why = tuple(explanations(report, row, figure.measures)) if word == "below" else ()
    known = [each.factor for each in why if each.factor is not None]
    explained = (math.prod(low for low, _ in known), math.prod(high for _, high in known)) if known else None
    return BaselineRow(
        baseline=baseline.name,
        source=baseline.source,
        date=baseline.date,
        conditions=baseline.conditions,
        name=figure.name,
        asked=figure.parameters,
        parameters=row["parameters"],
        unit=figure.unit,
        low=figure.low,
        high=figure.high,
        measured=measured,
        share=share,
        word=word,
        valid=bool(row["validity"]["valid"]),
        reasons=tuple(str(reason) for reason in row["validity"].get("reasons") or ()),
        note=figure.note,
        explanations=why,
        explained=explained,
    )


def _share(figure: Figure, measured: float) -> float:
    """Speed over the nearest end of the published range, 1.0 within it; for times the other way round."""
    if figure.low <= measured <= figure.high:
        return 1.0
    share = measured / (figure.low if measured < figure.low else figure.high)
    return 1 / share if figure.unit in LOWER_IS_BETTER else share
