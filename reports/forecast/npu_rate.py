# SPDX-License-Identifier: Apache-2.0
"""Time of one matmul on the NPU, between the shapes that were measured.

A run of M x K x N on one core takes ``fixed + K N tau(M)``: at M = 1 tau is the time to stream one weight, and it grows
with M by the multiplications. tau is measured at the M of the report's rows and goes in straight lines between them;
the spread over rows of one M but other K and N is part of its interval. Cores share the streaming part as
``npu_stream`` says and the rest as ``core_scaling`` says. Beyond the largest measured M the rate stays.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reports.forecast.board import INT8, Board, Row, number
from reports.forecast.quantity import ONE, Quantity, exact, sampled, span, unknown

WEIGHT_BYTES = {INT8: 1.0, 1: 2.0, 10: 0.5}
TYPE_WORDS = {INT8: "int8", 1: "fp16", 10: "int4"}


@dataclass
class NpuRate:
    """Times of one matmul type on one board. Points are worked out once and kept.

    ``batch_factor`` multiplies what M rows take beyond one: how much slower a back end's shapes are than those of the
    report, where a llama-bench file told.
    """

    board: Board
    kind: int = INT8
    batch_factor: Quantity = ONE
    _tau: dict[int, Quantity] | None = None
    _known: dict[tuple[int, int], Quantity] = field(default_factory=dict)

    def run(self, rows: int, k: int, n_largest: int, cores: int) -> Quantity:
        """Seconds of runs that multiply ``rows`` x ``k`` by the N segments of ``cores`` cores at once.

        ``n_largest`` is the largest N segment: the cores are waited for together.
        """
        return self.board.fixed() + self.per_weight(rows, cores) * (k * n_largest)

    def per_weight(self, rows: int, cores: int) -> Quantity:
        """tau of one core, in seconds for each element of its K x N, while ``cores`` work."""
        key = (rows, cores)
        if key not in self._known:
            self._known[key] = self._per_weight(rows, cores)
        return self._known[key]

    def _per_weight(self, rows: int, cores: int) -> Quantity:
        alone = self.stream_time()
        shared = self._shared(alone, cores)
        if rows == 1:
            return shared
        whole = self._at(rows)
        if whole.value is None or alone.value is None or not shared.known:
            return whole + alone + shared
        # What M rows cost beyond streaming the weights once; never less than nothing.
        above = [max(0.0, end - alone.value) for end in (whole.value, whole.low or 0.0, whole.high or 0.0)]
        beyond = Quantity(above[0], above[1], above[2], whole.sources)
        return shared + beyond * self.batch_factor * cores / self.board.scaling(cores)

    def _shared(self, alone: Quantity, cores: int) -> Quantity:
        """The streaming part of tau while ``cores`` read memory together."""
        if cores == 1:
            return alone
        if self.kind == INT8:
            return exact(cores) / self.board.stream(cores)
        # Streaming together was measured on int8; the memory they share is the same.
        return alone * cores * self.board.stream(1) / self.board.stream(cores)

    def stream_time(self) -> Quantity:
        """Seconds that one core takes to stream one weight of this type."""
        if self.kind == INT8:
            streamed = self.board.stream(1)
            if streamed.known:
                return streamed.inverse()
        found = self._points().get(1)
        if found is not None:
            return found
        return unknown("npu_stream, contexts 1" if self.kind == INT8 else f"gemm_rate of {self.words} at M = 1")

    @property
    def words(self) -> str:
        return TYPE_WORDS.get(self.kind, f"type {self.kind}")

    def _at(self, rows: int) -> Quantity:
        points = self._points()
        measured = sorted(m for m in points if m > 1)
        if not measured:
            return unknown(f"gemm_rate of {self.words} at M > 1")
        if rows in points:
            return points[rows]
        above = next((m for m in measured if m > rows), None)
        if above is None:
            return points[measured[-1]] * (rows / measured[-1])
        below = max((m for m in measured if m < rows), default=1)
        left = points[below] if below > 1 else self.stream_time()
        share = (rows - below) / (above - below)
        return left * (1 - share) + points[above] * share

    def _points(self) -> dict[int, Quantity]:
        """tau by M from the rows with B native and A, C normal, as matmul back ends bind them, of usable K."""
        if self._tau is None:
            readings: dict[int, list[Quantity]] = {}
            for row in self._rows():
                m = int(number(row["parameters"].get("M")) or 0)
                readings.setdefault(m, []).append(self._tau_of(row))
            self._tau = {m: known for m, each in readings.items() if (known := span(each)).known}
        return self._tau

    def _rows(self) -> list[Row]:
        limit = self.board.fast_k(self.kind)
        wanted = {"type": self.kind, "B_layout": "native", "AC_layout": "norm", "core_mask": 1}
        found = [*self.board.rows("gemm_rate", **wanted), *self.board.rows("run_time", **wanted)]
        return [
            row
            for row in found
            if all((number(row["parameters"].get(key)) or 0) >= 1 for key in "MKN")
            and (limit is None or (number(row["parameters"].get("K")) or 0) <= limit)
        ]

    def _tau_of(self, row: Row) -> Quantity:
        """Seconds for each K N of one row, the fixed cost taken out of each sample."""
        m, k, n = (number(row["parameters"].get(key)) or 1.0 for key in "MKN")
        fixed = self.board.fixed().value
        if fixed is None:
            return unknown("run_cost fixed")
        words = f"{row['name']} of {self.words}, M {m:.0f}"
        reading = self.board.reading(row, words)
        operations = 2 * m * k * n

        def tau(value: float) -> float | None:
            seconds = value * 1e-6 if row.get("unit") == "us" else operations / (value * 1e12)
            return (seconds - fixed) / (k * n) if seconds > fixed else None

        values = [tau(reading.value or 0.0)]
        ends = [tau(end) for end in (reading.low, reading.high) if end]
        if values[0] is None:
            return unknown(words)
        return sampled(values[0], [end for end in (*ends, values[0]) if end is not None], words)


@dataclass
class Rates:
    """The rates of every matmul type on one board; ``main`` is the type of most of the work."""

    board: Board
    main: int = INT8
    batch_factor: Quantity = ONE
    _made: dict[int, NpuRate] = field(default_factory=dict)

    def of(self, kind: int) -> NpuRate:
        if kind not in self._made:
            self._made[kind] = NpuRate(self.board, kind, self.batch_factor)
        return self._made[kind]
