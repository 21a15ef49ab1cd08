# SPDX-License-Identifier: Apache-2.0
"""Core scaling: speed-up over contexts on cores of their own, beside the ideal line and Amdahl's law as fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.page_reading import Record, count_of, is_right, is_valid, measured, number_of, parameters
from reports.plots.canvas import INK, SERIES, legend_below, marks
from reports.plots.series import Counts, Drawing, Missing, Point, usable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "core-scaling"
TITLE = "Core scaling"
ROWS = ("core_scaling", "core_scaling_fit")
_MOST_CORES = 64


def make(report: Record) -> Drawing | Missing:
    """Rates of ``core_scaling`` over that of one context, and the serial share of ``core_scaling_fit``."""
    counts = Counts()
    rates: dict[int, tuple[float, bool]] = {}
    for row, tops in usable(report, counts, "core_scaling"):
        contexts = count_of(parameters(row).get("contexts"))
        if contexts is not None and contexts <= _MOST_CORES:
            rates.setdefault(contexts, (tops, is_valid(row)))
    if 1 not in rates:
        return Missing(f"core_scaling has no rate of one context to compare with. {counts.words()}".strip())
    if len(rates) < 2:
        return Missing("Only one context was measured: this NPU has one core, or the others were not run.")
    base = rates[1][0]
    points = [Point(float(n), tops / base, valid) for n, (tops, valid) in sorted(rates.items())]
    serial = _serial(report)
    if serial is None:
        counts.notes.append("No Amdahl line: core_scaling_fit holds no serial share.")
    told = ", ".join(f"{point.y:.3g} on {point.x:.0f} cores" for point in points[1:])
    share = f" Amdahl's law with a serial share of {serial:.3g} fits best." if serial is not None else ""
    return Drawing(
        description=f"Speed-up over one core, {base:.3g} TOPS: {told}.{share}",
        caption=counts.words(),
        draw=lambda figure: _draw(figure, points, serial),
    )


def _serial(report: Record) -> float | None:
    """The serial share from 0 to 1 of Amdahl's law; None where it was not fitted."""
    for row in measured(report, "core_scaling_fit"):
        share = number_of(row.get("median"))
        if share is not None and 0 <= share <= 1 and is_right(row):
            return share
    return None


def _draw(figure: Figure, points: list[Point], serial: float | None) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    axes = figure.subplots()
    last = max(point.x for point in points)
    axes.plot([1, last], [1, last], color=INK, linestyle=(0, (1, 2)), linewidth=1.1, label="ideal")
    if serial is not None:
        xs = [1 + (last - 1) * step / 40 for step in range(41)]
        ys = [1 / (serial + (1 - serial) / x) for x in xs]
        axes.plot(xs, ys, color=SERIES[1], linestyle=(0, (5, 2)), label=f"Amdahl, serial {serial:.3g}")
    for hollow in (False, True):
        chosen = [point for point in points if point.valid != hollow]
        if chosen:
            label = "measured, not valid" if hollow else "measured"
            marks(axes, [p.x for p in chosen], [p.y for p in chosen], 0, label=label, hollow=hollow)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("contexts, each on a core of its own")
    axes.set_ylabel("times the rate of one")
    legend_below(figure, axes)
