# SPDX-License-Identifier: Apache-2.0
"""A matplotlib figure as SVG for the inside of a page: no pyplot, no script, no font files, colours by CSS variables.

One drawing reads on light and on dark ground: lines and text are drawn in placeholder colours that become CSS
variables of the page, and the page gives them a value for each ground. Hues follow Okabe and Ito's set, which stays
apart under the common colour deficiencies, darkened on light ground until each has a contrast of 3 to 1. Marker and
dash say the same once more.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

from reports.text import inert

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 5.0, 3.6
"""Inches of 72 units: 360 wide, so that text of 9 units stays 9 pixels on the narrowest phone."""

INK, FAINT, GROUND = "#010203", "#040506", "#070809"
SERIES = ("#a10001", "#a10002", "#a10003", "#a10004", "#a10005", "#a10006")
MARKERS = ("o", "s", "^", "D", "v", "P")
DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (2, 2)))
_VARIABLES = {
    INK: "var(--plot-ink)",
    FAINT: "var(--plot-faint)",
    GROUND: "var(--plot-ground)",
    **{colour: f"var(--plot-{index})" for index, colour in enumerate(SERIES)},
}
_SETTINGS: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "rknpu-kit",
    "text.parse_math": False,
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}
_PROLOGUE = re.compile(r"^.*?(?=<svg\b)", re.DOTALL)
_METADATA = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_STYLE = re.compile(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ID = re.compile(r'\bid="([^"]*)"')
_REFERENCE = re.compile(r'(xlink:href|href)="#([^"]*)"')
_URL = re.compile(r"url\(#([^)]*)\)")
_ROOT = re.compile(r"<svg\b[^>]*>")
_VIEW_BOX = re.compile(r'viewBox="([0-9. -]+)"')


def absent() -> str | None:
    """Why nothing can be drawn, or None where matplotlib is there."""
    try:
        import matplotlib.figure  # noqa: F401, PLC0415  the plots are an extra; the page without them is not
    except ImportError as error:
        return f"matplotlib is not installed ({inert(error, 100)}): in the checkout: pip install '.[report]'"
    return None


def drawn(name: str, title: str, description: str, draw: Callable[[Figure], None], height: float = HEIGHT) -> str:
    """The SVG element that ``draw`` makes of an empty figure.

    ``name`` goes before every id, so that several drawings share a page; ``title`` and ``description`` are its text
    for those who do not see it.
    """
    import matplotlib  # noqa: PLC0415
    from matplotlib.backends.backend_svg import FigureCanvasSVG  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    settings: Any = _SETTINGS  # its keys are a fixed list of literals in newer type information, and text in older
    with matplotlib.rc_context(settings):
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        figure.patch.set_visible(False)
        draw(figure)
        buffer = io.StringIO()
        canvas: Any = FigureCanvasSVG(figure)
        canvas.print_svg(buffer, metadata={"Date": None, "Creator": None})
    return _inlined(buffer.getvalue(), name, title, description)


def _inlined(svg: str, name: str, title: str, description: str) -> str:
    for pattern in (_PROLOGUE, _METADATA, _STYLE, _COMMENT):
        svg = pattern.sub("", svg, count=0)
    svg = _ID.sub(lambda match: f'id="{name}-{match[1]}"', svg)
    svg = _REFERENCE.sub(lambda match: f'href="#{name}-{match[2]}"', svg)
    svg = _URL.sub(lambda match: f"url(#{name}-{match[1]})", svg)
    for colour, variable in _VARIABLES.items():
        svg = svg.replace(colour, variable)
    box = _VIEW_BOX.search(svg)
    view = box[1] if box else f"0 0 {WIDTH * 72:.0f} {HEIGHT * 72:.0f}"
    head = (
        f'<svg role="img" aria-labelledby="{name}-title" aria-describedby="{name}-desc" viewBox="{view}" '
        f'preserveAspectRatio="xMidYMid meet">'
        f'<title id="{name}-title">{escape(inert(title))}</title>'
        f'<desc id="{name}-desc">{escape(inert(description))}</desc>'
    )
    return _ROOT.sub(lambda _: head, svg, count=1).strip()


def style(index: int) -> dict[str, Any]:
    """Colour, marker and dash of the ``index``-th series, for a line with marks."""
    at = index % len(SERIES)
    return {"color": SERIES[at], "marker": MARKERS[at], "linestyle": DASHES[at]}


def marks(axes: Axes, xs: list[float], ys: list[float], index: int, *, label: str, hollow: bool) -> None:
    """Points without a line; ``hollow`` ones were measured under conditions that were not valid."""
    at = index % len(SERIES)
    axes.plot(
        xs,
        ys,
        linestyle="none",
        marker=MARKERS[at],
        color=SERIES[at],
        markerfacecolor="none" if hollow else SERIES[at],
        label=inert(label, 60),
    )


def plain_log(axes: Axes, *, x: bool = False, y: bool = False, base: int = 10) -> None:
    """Logarithmic axes with plain numbers at their ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter, NullLocator  # noqa: PLC0415

    for wanted, axis, scale in ((x, axes.xaxis, axes.set_xscale), (y, axes.yaxis, axes.set_yscale)):
        if wanted:
            scale("log", base=base)
            axis.set_major_locator(LogLocator(base=base, subs=(1.0, 2.0, 5.0) if base == 10 else (1.0,), numticks=8))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_locator(NullLocator())
            axis.set_minor_formatter(NullFormatter())


def legend_below(figure: Figure, axes: Axes, columns: int = 3) -> None:
    """One legend under the axes, where it can hide no point."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=2.6, columnspacing=1.2)
