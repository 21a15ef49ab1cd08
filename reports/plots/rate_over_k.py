# SPDX-License-Identifier: Apache-2.0
"""Rate against K, with the cliff: above a K of its own, each type still answers right but many times slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from reports.page_reading import (
    Record,
    count_of,
    evidence,
    is_right,
    is_valid,
    items,
    measured,
    parameters,
    positive,
    record,
)
from reports.plots.canvas import FAINT, INK, legend_below, plain_log, style
from reports.plots.series import MOST_POINTS, Drawing, Missing, family

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "rate-over-k"
TITLE = "Rate against K"
ROWS = ("shape_limit",)
_TOPS_OF_NS_PER_MAC = 0.002
"""Two operations per multiply-accumulate: 1 ns each is 2 GOPS."""


@dataclass(frozen=True)
class Trail:
    """(K, TOPS) as tried, and the cliff between the last fast K and the first slow one, if any."""

    name: str
    style: int
    points: tuple[tuple[float, float], ...]
    fast: int | None
    slow: int | None
    times: float | None


def make(report: Record) -> Drawing | Missing:
    """Trails of the ``shape_limit`` rows that looked for the largest fast K, the first of each type."""
    by_type: dict[str, tuple[Trail, bool]] = {}
    for row in _rows(report):
        trail = _trail(row)
        if trail is not None:
            by_type.setdefault(trail.name, (trail, is_valid(row)))
    found = list(by_type.values())
    trails = [trail for trail, _ in found]
    if not trails:
        return Missing("No row of shape_limit holds the rates over K (level medium finds them).")
    told = [_told(trail) for trail in trails]
    unsure = [trail.name for trail, valid in found if not valid]
    note = f"Conditions were not valid for {', '.join(unsure)}." if unsure else ""
    return Drawing(
        description=" ".join(told),
        caption=f"Dotted: the last fast K. {note}".strip(),
        draw=lambda figure: _draw(figure, trails),
    )


def _rows(report: Record) -> list[Record]:
    return [
        row
        for row in measured(report, "shape_limit")
        if parameters(row).get("dimension") == "K" and parameters(row).get("limit") == "fast" and is_right(row)
    ]


def _trail(row: Record) -> Trail | None:
    points = set()
    for step in items(evidence(row).get("trail"))[:MOST_POINTS]:
        tried = record(step)
        k, cost = positive(tried.get("value")), positive(tried.get("ns_per_mac"))
        if k is not None and cost is not None and tried.get("right") is True:
            points.add((k, _TOPS_OF_NS_PER_MAC / cost))
    if not points:
        return None
    name, number = family(row)
    ends = evidence(row).get("ends_by") == "slow"
    return Trail(
        name=name,
        style=number,
        points=tuple(sorted(points)),
        fast=count_of(row.get("median")) if ends else None,
        slow=count_of(evidence(row).get("ends_at")) if ends else None,
        times=positive(evidence(row).get("slower_times")) if ends else None,
    )


def _told(trail: Trail) -> str:
    if trail.fast is None or trail.slow is None:
        return f"{trail.name}: no cliff up to K = {trail.points[-1][0]:.0f}."
    slower = f", {trail.times:.3g} times slower per multiply-accumulate" if trail.times else ""
    return f"{trail.name}: fast up to K = {trail.fast}; K = {trail.slow} is slow{slower}."


def _draw(figure: Figure, trails: list[Trail]) -> None:
    axes = figure.subplots()
    plain_log(axes, x=True, base=2)
    plain_log(axes, y=True)
    for at, trail in enumerate(trails):
        look = style(trail.style)
        # Types often go at one rate: the first lines are broad, so that those above them leave an edge to see.
        look["linewidth"] = max(1.2, 3.0 - 0.9 * at)
        axes.plot([k for k, _ in trail.points], [tops for _, tops in trail.points], label=trail.name, **look)
    axes.margins(y=0.25)
    for at, fast in enumerate(sorted({trail.fast for trail in trails if trail.fast is not None})):
        axes.axvline(fast, color=INK, linestyle=":", linewidth=1.0)
        axes.annotate(
            f"K = {fast}",
            (fast, 0.95 - 0.09 * at),
            xycoords=("data", "axes fraction"),
            xytext=(-3, 0),
            textcoords="offset points",
            ha="right",
            color=INK,
            fontsize=8,
        )
    axes.grid(True, color=FAINT)
    axes.set_xlabel("K")
    axes.set_ylabel("TOPS")
    legend_below(figure, axes)
