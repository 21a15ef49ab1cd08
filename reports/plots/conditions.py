# SPDX-License-Identifier: Apache-2.0
"""Clocks and temperatures over the run, as they were sampled beside each measured row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reports.page_groups import TITLES
from reports.page_reading import Record, evidence, items, positive, record, words
from reports.plots.canvas import DASHES, MARKERS, SERIES
from reports.plots.series import MOST_POINTS, Drawing, Missing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "conditions"
TITLE = "Clock and temperature over the run"
ROWS = tuple(TITLES)
"""Conditions are sampled beside every row."""
_MOST_LINES = 6
_MHZ = 1e-6
_MARKS = 12
"""Marks on one line: they tell lines apart, and each costs a hundred bytes of the page."""


@dataclass
class Trace:
    """One quantity: seconds of sampled time, and lowest, median and highest value beside each row."""

    at: list[float] = field(default_factory=list)
    low: list[float] = field(default_factory=list)
    mid: list[float] = field(default_factory=list)
    high: list[float] = field(default_factory=list)

    def add(self, seconds: float, spread: Record, scale: float) -> None:
        """Take a spread of min, median and max; one that lacks a number leaves a gap."""
        low, mid, high = (positive(spread.get(key)) for key in ("min", "median", "max"))
        if low is not None and mid is not None and high is not None and len(self.at) < MOST_POINTS:
            self.at.append(seconds)
            self.low.append(low * scale)
            self.mid.append(mid * scale)
            self.high.append(high * scale)


def make(report: Record) -> Drawing | Missing:
    """Spreads in ``evidence.conditions`` of the rows, in the order of the report."""
    clocks: dict[str, Trace] = {}
    heat: dict[str, Trace] = {}
    seconds = 0.0
    why = ""
    for row in items(report.get("measurements")):
        sampled = record(evidence(record(row)).get("conditions"))
        took = positive(sampled.get("duration_s"))
        if not sampled or took is None:
            continue
        middle = seconds + took / 2
        seconds += took
        for key, name in (("npu_clock_hz", "NPU"), ("ddr_clock_hz", "DDR")):
            _trace(clocks, name).add(middle, record(sampled.get(key)), _MHZ)
        for traces, key, scale in ((clocks, "cpu_clock_hz", _MHZ), (heat, "temperature_c", 1.0)):
            for name, spread in list(record(sampled.get(key)).items())[:_MOST_LINES]:
                _trace(traces, words(name, 20)).add(middle, record(spread), scale)
        why = why or words(record(sampled.get("unknown")).get("npu_clock_hz"), 200)
    clocks = {name: trace for name, trace in clocks.items() if trace.at}
    heat = {name: trace for name, trace in heat.items() if trace.at}
    if not clocks and not heat:
        reason = f": {why}" if why else ""
        return Missing(f"Neither a clock nor a temperature could be sampled{reason}.")
    missing = [name for name, found in (("No clock", clocks), ("No temperature", heat)) if not found]
    note = f" {' and '.join(missing)} could be sampled." if missing else ""
    return Drawing(
        description="; ".join([*_told(clocks, "MHz"), *_told(heat, "C")]) + ".",
        caption=f"Time is that of the sampled rows, without the pauses between them. Bands: lowest to highest.{note}",
        draw=lambda figure: _draw(figure, clocks, heat),
        height=4.6 if clocks and heat else 3.6,
    )


def _trace(traces: dict[str, Trace], name: str) -> Trace:
    if name not in traces and len(traces) >= 2 * _MOST_LINES:
        return Trace()  # one line too many: taken and dropped
    return traces.setdefault(name, Trace())


def _told(traces: dict[str, Trace], unit: str) -> list[str]:
    return [f"{name} {min(one.low):.4g} to {max(one.high):.4g} {unit}" for name, one in traces.items()]


def _draw(figure: Figure, clocks: dict[str, Trace], heat: dict[str, Trace]) -> None:
    panels = (
        [(clocks, "MHz"), (heat, "degrees C")]
        if clocks and heat
        else [(clocks, "MHz") if clocks else (heat, "degrees C")]
    )
    rows = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for axes, (traces, unit) in zip(rows[:, 0], panels, strict=True):
        _panel(axes, traces)
        axes.set_ylabel(unit)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=2.2)
    rows[-1, 0].set_xlabel("seconds of sampled time")


def _panel(axes: Axes, traces: dict[str, Trace]) -> None:
    for number, (name, one) in enumerate(traces.items()):
        at = number % len(SERIES)
        axes.fill_between(one.at, one.low, one.high, color=SERIES[at], alpha=0.25, linewidth=0)
        axes.plot(
            one.at,
            one.mid,
            color=SERIES[at],
            linestyle=DASHES[at],
            marker=MARKERS[at],
            markersize=4,
            markevery=max(1, len(one.at) // _MARKS),
            linewidth=1.2,
            label=name,
        )
