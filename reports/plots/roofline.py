# SPDX-License-Identifier: Apache-2.0
"""Roofline: every measured GEMM point over its operations per byte, under the roof of the measured streaming rate and
the highest measured rate of each type; a model's layers on that roof."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reports.page_reading import Record, evidence, is_right, is_valid, measured, parameters, positive, words
from reports.plots.canvas import DASHES, INK, SERIES, legend_below, marks, plain_log
from reports.plots.series import (
    Counts,
    Drawing,
    Missing,
    ModelLayers,
    Point,
    Series,
    collect,
    family,
    operand_bytes,
    ops_per_byte,
    usable,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "roofline"
TITLE = "Roofline of one core"
ROWS = ("gemm_rate", "npu_stream")
_W8A8 = (1.0, 1.0, 4.0)
"""Bytes of A, B and C of the type that language models run as: int8 times int8 into int32."""
_DECODE_M, _PREFILL_M = 1, 512


def make(report: Record, model: ModelLayers | None = None) -> Drawing | Missing:
    """Points of all ``gemm_rate`` rows; Missing where there are none."""
    counts = Counts()
    pairs = []
    for row, tops in usable(report, counts, "gemm_rate"):
        intensity = _intensity(row)
        if intensity is not None:
            pairs.append((family(row), Point(intensity, tops, is_valid(row))))
    if not pairs:
        return Missing(f"No row of gemm_rate has a right result and a rate. {counts.words()}".strip())
    series = collect(pairs)
    bandwidth = _bandwidth(report)
    if bandwidth is None:
        counts.notes.append("No slope: streaming by one core (npu_stream) was not measured.")
    tops_of = {one.name: max(point.y for point in one.points) for one in series}
    placed = _placed(model, bandwidth, tops_of.get("int8")) if model else []
    if model:
        counts.notes.append(_model_note(model, placed))
    highest = ", ".join(f"{name} {tops:.3g} TOPS" for name, tops in tops_of.items())
    slope = f"; the slope is {bandwidth:.3g} GB/s" if bandwidth is not None else ""
    return Drawing(
        description=f"{sum(len(one.points) for one in series)} measured points; highest rate {highest}{slope}.",
        caption=counts.words(),
        draw=lambda figure: _draw(figure, series, bandwidth, placed),
    )


def _intensity(row: Record) -> float | None:
    told = positive(evidence(row).get("ops_per_byte"))
    if told is not None:
        return told
    sides = [positive(parameters(row).get(side)) for side in ("M", "K", "N")]
    sizes = operand_bytes(words(parameters(row).get("type_name"), 60))
    m, k, n = sides
    return None if m is None or k is None or n is None or sizes is None else ops_per_byte(m, k, n, sizes)


def _bandwidth(report: Record) -> float | None:
    """GB/s at which one core streams weights; None where it was not measured."""
    for row in measured(report, "npu_stream"):
        if parameters(row).get("contexts") == 1 and is_right(row):
            return positive(row.get("median"))
    return None


def _placed(model: ModelLayers, bandwidth: float | None, tops: float | None) -> list[tuple[int, float, float]]:
    """(M, operations per byte, TOPS of the roof there) of each layer, for decode and for prefill."""
    if bandwidth is None or tops is None:
        return []
    points = []
    for layer in model.layers:
        for m in (_DECODE_M, _PREFILL_M):
            x = ops_per_byte(m, layer.K, layer.N, _W8A8)
            points.append((m, x, min(tops, x * bandwidth / 1000)))
    return points


def _model_note(model: ModelLayers, placed: list[tuple[int, float, float]]) -> str:
    if not placed:
        return f"The layers of {model.name} need a measured int8 rate and a measured streaming rate."
    count = sum(layer.count for layer in model.layers)
    return (
        f"Crosses: the {count} matmuls of {model.name} as W8A8, where the roof allows them to be, not measured: "
        f"M = {_DECODE_M} (decode) and M = {_PREFILL_M} (prefill)."
    )


def _draw(
    figure: Figure, series: tuple[Series, ...], bandwidth: float | None, placed: list[tuple[int, float, float]]
) -> None:
    axes = figure.subplots()
    plain_log(axes, x=True, y=True)
    every = [point.x for one in series for point in one.points] + [x for _, x, _ in placed]
    low, high = min(every) / 1.5, max(every) * 1.5
    for one in series:
        _roof(axes, one, bandwidth, low, high)
        for hollow in (False, True):
            chosen = [point for point in one.points if point.valid != hollow]
            if chosen:
                label = one.name if not hollow else f"{one.name}, not valid"
                marks(axes, [p.x for p in chosen], [p.y for p in chosen], one.style, label=label, hollow=hollow)
    for m, marker, label in ((_DECODE_M, "x", "model, M = 1"), (_PREFILL_M, "+", "model, M = 512")):
        here = [(x, y) for at, x, y in placed if at == m]
        if here:
            axes.plot([x for x, _ in here], [y for _, y in here], marker, color=INK, markersize=7, label=label)
    axes.set_xlabel("operations per byte of A, B and C")
    axes.set_ylabel("TOPS")
    legend_below(figure, axes)


def _roof(axes: Axes, one: Series, bandwidth: float | None, low: float, high: float) -> None:
    ceiling = max(point.y for point in one.points)
    at = one.style % len(SERIES)
    if bandwidth is None:
        xs, ys = [low, high], [ceiling, ceiling]
    else:
        ridge = min(max(ceiling * 1000 / bandwidth, low), high)
        xs, ys = (
            [low, ridge, high],
            [min(ceiling, low * bandwidth / 1000), min(ceiling, ridge * bandwidth / 1000), ceiling],
        )
    axes.plot(xs, ys, color=SERIES[at], linestyle=DASHES[at], linewidth=1.1)
