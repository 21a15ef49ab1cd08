# SPDX-License-Identifier: Apache-2.0
"""DDR bandwidth: CPU threads by cluster and kind of access, and the NPU by cores, beside the limit by theory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.page_reading import Record, fact, fact_number, is_valid, parameters, positive, simulated, words
from reports.plots.canvas import FAINT, HEIGHT, INK, legend_below, marks
from reports.plots.series import Counts, Drawing, Missing, usable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "bandwidth"
TITLE = "DDR bandwidth by threads and cores"
ROWS = ("cpu_bandwidth", "npu_stream")
_OPS = ("read", "write", "copy", "triad")
_NPU = "NPU streams weights"
_MOST_LINES = 24
Dots = list[tuple[str, str, float, bool]]
"""(line, kind of access, GB/s, valid)"""


def make(report: Record) -> Drawing | Missing:
    """``cpu_bandwidth`` and ``npu_stream`` rows, one line for each set of CPUs and thread count."""
    counts = Counts()
    dots = _dots(report, counts)
    if not dots:
        return Missing(f"Neither cpu_bandwidth nor npu_stream has a rate. {counts.words()}".strip())
    limit = positive(fact_number(report, "ddr.theoretical_gbps"))
    if limit is None:
        reason = words(fact(report, "ddr.theoretical_gbps").get("reason"), 200)
        counts.notes.append(f"The limit by theory is unknown{f': {reason}' if reason else ''}.")
    if simulated(report) and any(kind == _NPU for _, kind, _, _ in dots):
        counts.notes.append("The CPU rows are of this machine; the NPU rows are of the mock.")
    best = max(dots, key=lambda dot: dot[2])
    of_limit = f" of {limit:.3g} GB/s by theory ({100 * best[2] / limit:.0f} %)" if limit is not None else ""
    lines = list(dict.fromkeys(line for line, _, _, _ in dots))
    return Drawing(
        description=f"Highest: {best[1]} with {best[0]}, {best[2]:.3g} GB/s{of_limit}.",
        caption=counts.words(),
        draw=lambda figure: _draw(figure, dots, lines, limit),
        height=max(HEIGHT, 1.6 + 0.24 * len(lines)),
    )


def _dots(report: Record, counts: Counts) -> Dots:
    dots: Dots = []
    lines: set[str] = set()
    for row, gbps in usable(report, counts, "cpu_bandwidth", "npu_stream"):
        given = parameters(row)
        if row.get("name") == "npu_stream":
            contexts = words(given.get("contexts"), 6)
            line, kind = f"NPU, {contexts} core{'' if contexts == '1' else 's'}", _NPU
        else:
            threads = words(given.get("threads"), 6)
            line = f"CPU {words(given.get('cpus'), 12)}, {threads} thread{'' if threads == '1' else 's'}"
            kind = f"CPU {words(given.get('op'), 12)}"
        if line not in lines and len(lines) >= _MOST_LINES:
            counts.too_many += 1
            continue
        lines.add(line)
        dots.append((line, kind, gbps, is_valid(row)))
    return dots


def _draw(figure: Figure, dots: Dots, lines: list[str], limit: float | None) -> None:
    axes = figure.subplots()
    kinds = [*(f"CPU {op}" for op in _OPS), _NPU]
    for number, kind in enumerate(kinds):
        for hollow in (False, True):
            chosen = [dot for dot in dots if dot[1] == kind and dot[3] != hollow]
            if chosen:
                at = [float(lines.index(dot[0])) for dot in chosen]
                label = f"{kind}, not valid" if hollow else kind
                marks(axes, [dot[2] for dot in chosen], at, number, label=label, hollow=hollow)
    if limit is not None:
        axes.axvline(limit, color=INK, linestyle=(0, (5, 2)), linewidth=1.2, label=f"by theory {limit:.3g} GB/s")
    axes.set_yticks(range(len(lines)), lines)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.grid(True, axis="both", color=FAINT)
    axes.set_xlabel("GB/s")
    legend_below(figure, axes, columns=2)
