# SPDX-License-Identifier: Apache-2.0
"""The coefficients of a forecast, out of the rows of one report. Nothing here has a number of its own.

Each method answers with a quantity in SI units (bytes and operations per second, seconds); where the report has no row
for it the answer is unknown and names the row that is missing. Rows that were not proven right have no number in a
report; rows taken under conditions that spoil them are used, and ``doubts`` names them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reports.forecast.quantity import Quantity, sampled, unknown

INT8, FP16, INT4 = 2, 1, 10
"""Matmul types of the runtime that the pipelines run on (rknn_matmul_api.h)."""

MOST_CORES = 8

Row = Mapping[str, Any]


def number(value: Any) -> float | None:
    """``value`` where it is a number, else None."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


@dataclass
class Board:
    """One report, asked for coefficients. ``doubts`` grows: names of rows used whose conditions were not valid."""

    report: Mapping[str, Any]
    doubts: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, list[Row]] = field(default_factory=dict)
    _answers: dict[tuple[str, object], Quantity] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.report.get("measurements", ()):
            if row.get("verdict") == "passed" and (number(row.get("median")) or 0) > 0:
                self._by_name.setdefault(str(row.get("name")), []).append(row)

    @property
    def simulated(self) -> bool:
        return self.report.get("simulated") is True

    def fact(self, key: str) -> Any:
        """The value of a fact; None where it is unknown."""
        return (self.report.get("facts", {}).get(key) or {}).get("value")

    def rows(self, name: str, **parameters: Any) -> list[Row]:
        """Rows with a positive number, of that name and with these parameters."""
        return [
            row
            for row in self._by_name.get(name, ())
            if all((row.get("parameters") or {}).get(key) == value for key, value in parameters.items())
        ]

    def reading(self, row: Row, label: str, unit: float = 1.0) -> Quantity:
        """The number of a row times ``unit``, with the interval of its samples."""
        validity = row.get("validity") or {}
        if not validity.get("valid"):
            self.doubts.setdefault(label, "; ".join(str(reason) for reason in validity.get("reasons") or ()))
        samples = [value * unit for value in map(number, row.get("samples") or ()) if value is not None and value > 0]
        return sampled((number(row.get("median")) or 0.0) * unit, samples, label)

    def one(self, label: str, unit: float, name: str, **parameters: Any) -> Quantity:
        """The first row of that kind as a quantity; unknown, by ``label``, where there is none."""
        key = (name, tuple(parameters.items()))
        if key not in self._answers:
            found = self.rows(name, **parameters)
            self._answers[key] = self.reading(found[0], label, unit) if found else unknown(label)
        return self._answers[key]

    @property
    def cores(self) -> int:
        """NPU cores that were measured together; 1 where only one was."""
        counts = [
            int(number(row["parameters"].get("contexts")) or 0)
            for name in ("npu_stream", "core_scaling")
            for row in self.rows(name)
            if 1 <= (number((row.get("parameters") or {}).get("contexts")) or 0) <= MOST_CORES
        ]
        return max(counts, default=1)

    def fixed(self) -> Quantity:
        """Seconds that any run takes (measured on int8; what a run does beside multiplying is the same code)."""
        return self.one("run_cost fixed", 1e-6, "run_cost", part="fixed")

    def stream(self, cores: int) -> Quantity:
        """Weight bytes per second that ``cores`` cores read together at M = 1, the fixed cost of a run taken out."""
        key = ("npu_stream", cores)
        if key not in self._answers:
            self._answers[key] = self._stream(cores)
        return self._answers[key]

    def _stream(self, cores: int) -> Quantity:
        label = f"npu_stream, contexts {cores}"
        found = self.rows("npu_stream", contexts=cores)
        if not found:
            return self._between(cores, label)
        row, fixed = found[0], self.fixed()
        size = number((row.get("evidence") or {}).get("bytes_per_run"))
        if size is None or fixed.value is None:
            return self.reading(row, label, 1e9)

        def net(gbps: float) -> float:
            left = cores * size / (gbps * 1e9) - (fixed.value or 0.0)
            return cores * size / left / 1e9 if left > 0 else gbps

        samples = [net(value) for value in map(number, row.get("samples") or ()) if value is not None and value > 0]
        adjusted = {**row, "median": net(number(row.get("median")) or 0.0), "samples": samples}
        return self.reading(adjusted, label, 1e9)

    def _between(self, cores: int, label: str) -> Quantity:
        """For a count of cores between two measured ones: anything between them, as more cores do not read less."""
        if not (self.rows("npu_stream", contexts=cores - 1) and self.rows("npu_stream", contexts=cores + 1)):
            return unknown(label)
        less, more = self._stream(cores - 1), self._stream(cores + 1)
        if less.low is None or more.high is None or more.high < less.low:
            return unknown(label)
        return Quantity((less.low + more.high) / 2, less.low, more.high, (*less.sources, *more.sources))

    def scaling(self, cores: int) -> Quantity:
        """How many times the rate of one context ``cores`` contexts on cores of their own reach together."""
        if cores == 1:
            return Quantity(1.0, 1.0, 1.0)
        one = self.one("core_scaling, contexts 1", 1.0, "core_scaling", contexts=1)
        return self.one(f"core_scaling, contexts {cores}", 1.0, "core_scaling", contexts=cores) / one

    def sync(self, direction: str, size: int) -> Quantity:
        """Seconds of one ``rknn_mem_sync`` over ``size`` bytes, on the line through the sizes that were measured."""
        key = (f"sync {direction}", size)
        if key not in self._answers:
            self._answers[key] = self._sync(direction, size)
        return self._answers[key]

    def _sync(self, direction: str, size: int) -> Quantity:
        label = f"run_cost sync {direction}"
        rows = self.rows("run_cost", part="sync", direction=direction)
        sizes = {number((row.get("parameters") or {}).get("bytes")) or 0.0: row for row in rows}
        if len(sizes) < 2:
            return unknown(label)
        small, large = min(sizes), max(sizes)
        first, last = (self.reading(sizes[each], label, 1e-6) for each in (small, large))
        share = (size - small) / (large - small)
        if share < 0:
            return first
        return first * max(0.0, 1 - share) + last * share if share <= 1 else last * (size / large)

    def cpu_sets(self) -> list[str]:
        """The sets of CPUs whose memory bandwidth was measured, largest reader first."""
        best: dict[str, float] = {}
        for row in self.rows("cpu_bandwidth", op="read"):
            cpus = str((row.get("parameters") or {}).get("cpus"))
            best[cpus] = max(best.get(cpus, 0.0), number(row.get("median")) or 0.0)
        return sorted(best, key=lambda cpus: -best[cpus])

    def cpu_bandwidth(self, op: str, cpus: str | None) -> Quantity:
        """Bytes per second that a set of CPUs moves in ``op`` (read, write, copy, triad; counted as STREAM counts)."""
        if cpus is None:
            return unknown(f"cpu_bandwidth {op}")
        return self.one(f"cpu_bandwidth {op}, CPUs {cpus}", 1e9, "cpu_bandwidth", op=op, cpus=cpus)

    def contention(self, of: str, beside: str) -> Quantity:
        """The share of its rate alone that ``of`` keeps beside ``beside``."""
        return self.one(f"contention of {of} beside {beside}", 1.0, "contention", of=of, beside=beside)

    def fast_k(self, kind: int) -> int | None:
        """The largest K that a context of this type multiplies at full rate; None where it was not found."""
        found = self.rows("shape_limit", type=kind, dimension="K", limit="fast")
        return int(number(found[0].get("median")) or 0) if found else None

    def conditions(self) -> Sequence[str]:
        """One sentence for each doubtful row that was used."""
        return [f"{name}: {reasons or 'conditions unknown'}" for name, reasons in sorted(self.doubts.items())]
