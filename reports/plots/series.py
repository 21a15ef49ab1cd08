# SPDX-License-Identifier: Apache-2.0
"""What a plot is made of, before it is drawn: points with the anchor, the verdict and the validity of their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from reports.page_reading import Record, is_right, is_valid, measured, parameters, positive, words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_POINTS = 600
"""Points drawn in one plot; the caption counts the rest."""

TYPE_FAMILIES = (("int8", "int8"), ("float16", "fp16"), ("int4", "int4"), ("bfloat16", "bf16"), ("tf32", "tf32"))
_ELEMENT_BYTES = {"int4": 0.5, "int8": 1.0, "int16": 2.0, "float16": 2.0, "bfloat16": 2.0, "int32": 4.0, "float32": 4.0}


@dataclass(frozen=True)
class Missing:
    """Why a report has nothing to draw: one sentence."""

    why: str


@dataclass(frozen=True)
class Point:
    """``x`` and ``y`` in the units of the plot's axes; ``valid`` by the conditions of the row."""

    x: float
    y: float
    valid: bool


@dataclass(frozen=True)
class Series:
    """Points that belong together under one name. ``style`` picks colour, marker and dash."""

    name: str
    style: int
    points: tuple[Point, ...]


@dataclass
class Counts:
    """What was not drawn, for the caption."""

    wrong: int = 0
    too_many: int = 0
    invalid: int = 0
    notes: list[str] = field(default_factory=list)

    def words(self) -> str:
        parts = list(self.notes)
        if self.invalid:
            parts.append(f"Hollow marks: {self.invalid} points measured under conditions that were not valid.")
        if self.wrong:
            parts.append(f"Left out: {self.wrong} rows whose result was wrong or missing.")
        if self.too_many:
            parts.append(f"Left out: {self.too_many} more points.")
        return " ".join(parts)


def usable(report: Record, counts: Counts, *names: str) -> list[tuple[Record, float]]:
    """Rows called ``names`` with a right result and a positive median, and that median; the others are counted."""
    found: list[tuple[Record, float]] = []
    for row in measured(report, *names):
        median = positive(row.get("median"))
        if median is None or not is_right(row):
            counts.wrong += 1
        elif len(found) >= MOST_POINTS:
            counts.too_many += 1
        else:
            counts.invalid += not is_valid(row)
            found.append((row, median))
    return found


def family(row: Record) -> tuple[str, int]:
    """(short name, style) of the row's matmul type by its first operand; what is not known shares the last style."""
    name = words(parameters(row).get("type_name"), 60)
    for style, (start, short) in enumerate(TYPE_FAMILIES):
        if name.startswith(start):
            return short, style
    return "other", len(TYPE_FAMILIES)


def operand_bytes(type_name: str) -> tuple[float, float, float] | None:
    """Bytes of one element of A, B and C from a name like ``int8_int8_int32``; None where a part is unknown."""
    parts = [_ELEMENT_BYTES.get(part) for part in type_name.split("_")]
    if len(parts) != 3:
        return None
    a, b, c = parts
    return None if a is None or b is None or c is None else (a, b, c)


def ops_per_byte(m: float, k: float, n: float, sizes: tuple[float, float, float]) -> float:
    """Operations (two per multiply-accumulate) per byte of A, B and C, each moved once."""
    a, b, c = sizes
    return 2 * m * k * n / (m * k * a + k * n * b + m * n * c)


def collect(pairs: list[tuple[tuple[str, int], Point]]) -> tuple[Series, ...]:
    """Points by (name, style), in the order in which the names first appear; each series by rising x."""
    found: dict[tuple[str, int], list[Point]] = {}
    for key, point in pairs:
        found.setdefault(key, []).append(point)
    return tuple(
        Series(name, style, tuple(sorted(points, key=lambda point: (point.x, point.y))))
        for (name, style), points in found.items()
    )


@dataclass(frozen=True)
class Drawing:
    """A plot ready to be drawn. ``description`` is what it shows, in words; ``caption`` stands below it.

    ``height`` in inches at the width of canvas.WIDTH.
    """

    description: str
    caption: str
    draw: Callable[[Figure], None]
    height: float = 3.6


@dataclass(frozen=True)
class Layer:
    """Weights of a model that are multiplied alike: ``count`` of shape K x N, under the role they share."""

    role: str
    K: int
    N: int
    count: int


@dataclass(frozen=True)
class ModelLayers:
    """The matmul weights of one model, from its header."""

    name: str
    layers: tuple[Layer, ...]
