# SPDX-License-Identifier: Apache-2.0
"""Time of a run against M: flat where the weights' traffic sets it, rising where arithmetic does, stepped where M is
rounded up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.page_reading import Record, evidence, is_valid, parameters, positive, record, words
from reports.plots.canvas import legend_below, plain_log, style
from reports.plots.series import Counts, Drawing, Missing, Point, Series, collect, family, usable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "time-over-m"
TITLE = "Time against M"
ROWS = ("run_time", "gemm_rate")


def make(report: Record) -> Drawing | Missing:
    """``run_time`` rows, and the sweep over M of ``gemm_rate``, each at the K and N that most of its rows share."""
    counts = Counts()
    pairs = [(("int8, run_time", 3), point) for point in _of_run_time(report, counts)]
    pairs += _of_grid(report, counts)
    series = tuple(one for one in collect(pairs) if len({point.x for point in one.points}) > 1)
    if not series:
        return Missing(f"No time of a run was measured for two values of M. {counts.words()}".strip())
    told = "; ".join(
        f"{one.name}: {one.points[0].y:.4g} us at M = {one.points[0].x:.0f}, {one.points[-1].y:.4g} us at "
        f"M = {one.points[-1].x:.0f}"
        for one in series
    )
    return Drawing(description=f"{told}.", caption=counts.words(), draw=lambda figure: _draw(figure, series))


def _of_run_time(report: Record, counts: Counts) -> list[Point]:
    points = []
    for row, run_us in usable(report, counts, "run_time"):
        m = positive(parameters(row).get("M"))
        if m is not None:
            points.append(Point(m, run_us, is_valid(row)))
    return points


def _of_grid(report: Record, counts: Counts) -> list[tuple[tuple[str, int], Point]]:
    """One series per type, native B and norm A and C, at the first K and N of its sweep."""
    pairs = []
    shapes: dict[str, tuple[object, object]] = {}
    for row, _ in usable(report, Counts(), "gemm_rate"):
        given = parameters(row)
        m, run_us = positive(given.get("M")), positive(record(evidence(row).get("run_us")).get("median"))
        if given.get("series") != "grid" or given.get("B_layout") != "native" or m is None or run_us is None:
            continue
        name, number = family(row)
        kind = f"{name}, {words(given.get('AC_layout'), 20)} A and C, {words(given.get('B_quant'), 20)}"
        first = shapes.setdefault(name, (kind, (given.get("K"), given.get("N"))))
        if first == (kind, (given.get("K"), given.get("N"))):
            counts.invalid += not is_valid(row)
            pairs.append(((f"{name}, gemm_rate", number), Point(m, run_us, is_valid(row))))
    return pairs


def _draw(figure: Figure, series: tuple[Series, ...]) -> None:
    axes = figure.subplots()
    plain_log(axes, x=True, base=2)
    plain_log(axes, y=True)
    for one in series:
        look = style(one.style)
        look["linewidth"] = 1.0
        axes.plot([p.x for p in one.points], [p.y for p in one.points], label=one.name, markerfacecolor="none", **look)
        valid = [point for point in one.points if point.valid]
        if valid:
            look["linestyle"] = "none"
            axes.plot([p.x for p in valid], [p.y for p in valid], **look)
    axes.set_xlabel("M")
    axes.set_ylabel("us per run")
    legend_below(figure, axes, columns=2)
