# SPDX-License-Identifier: Apache-2.0
"""All plots of a page, in its order: each drawn, or the sentence that says why it is not."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from reports.page_reading import Record
from reports.plots import bandwidth, conditions, core_scaling, rate_over_k, roofline, time_over_m
from reports.plots.canvas import absent, drawn
from reports.plots.series import Drawing, Missing, ModelLayers

_MODULES = (rate_over_k, core_scaling, time_over_m, bandwidth, conditions)


@dataclass(frozen=True)
class Plot:
    """One plot of a page. ``svg`` is None where there is none; ``why`` says the reason then.

    ``measured`` is False where the report holds nothing to draw, True where it does and only the drawing is missing.
    ``rows`` are the names of the measurements that it is made of.
    """

    name: str
    title: str
    svg: str | None
    description: str
    caption: str
    why: str
    measured: bool
    rows: tuple[str, ...]


def plots_of(report: Record, model: ModelLayers | None = None) -> tuple[Plot, ...]:
    """The plots of ``report``; with ``model``, its layers on the roofline."""
    unable = absent()
    made = [_plot(roofline, roofline.make(report, model), unable)]
    made += [_plot(module, module.make(report), unable) for module in _MODULES]
    return tuple(made)


def _plot(module: ModuleType, made: Drawing | Missing, unable: str | None) -> Plot:
    name, title, rows = module.NAME, module.TITLE, module.ROWS
    if isinstance(made, Missing):
        return Plot(name, title, None, "", "", made.why, measured=False, rows=rows)
    if unable is not None:
        return Plot(name, title, None, made.description, made.caption, unable, measured=True, rows=rows)
    svg = drawn(f"plot-{name}", title, made.description, made.draw, made.height)
    return Plot(name, title, svg, made.description, made.caption, "", measured=True, rows=rows)
