# SPDX-License-Identifier: Apache-2.0
"""Where the time of a device matmul goes: prepare A, run, collect C, and the way to the child and back.

The shares decide whether pipelining the phases can pay: in the campaign on RK3588 it could not. On a simulated device
they are a CPU's shares, and the report says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

KINDS = ("prefill", "decode")


class Spent(NamedTuple):
    """Nanoseconds of one matmul: in this process before, during and after the request, and inside the child."""

    prepare: int
    request: int
    collect: int
    inside: tuple[int, int, int]


@dataclass
class Phase:
    """Sums over the calls of one kind, in nanoseconds.

    ``prepare`` is quantising plus filling, syncing and binding A in the child; ``run`` the runtime's own run;
    ``collect`` syncing and reading C in the child plus scaling and adding; ``transport`` what the child costs: an
    engine that calls the runtime in process would not have it.
    """

    calls: int = 0
    rows: int = 0
    prepare: int = 0
    run: int = 0
    collect: int = 0
    transport: int = 0

    def add(self, rows: int, spent: Spent) -> None:
        self.calls += 1
        self.rows += rows
        self.prepare += spent.prepare + spent.inside[0]
        self.run += spent.inside[1]
        self.collect += spent.collect + spent.inside[2]
        self.transport += max(0, spent.request - sum(spent.inside))

    def as_json(self) -> dict[str, Any]:
        """Times and, of the three phases alone, shares; shares are None where nothing ran."""
        total = self.prepare + self.run + self.collect
        names = ("prepare", "run", "collect")
        return {
            "calls": self.calls,
            "rows": self.rows,
            **{f"{name}_ns": getattr(self, name) for name in (*names, "transport")},
            **{f"{name}_share": getattr(self, name) / total if total else None for name in names},
        }


@dataclass
class PhaseLog:
    """Phases by kind of call, and by weight."""

    simulated: bool
    note: str | None
    kinds: dict[str, Phase] = field(default_factory=lambda: {kind: Phase() for kind in KINDS})
    weights: dict[tuple[str, str], Phase] = field(default_factory=dict)

    def add(self, name: str, rows: int, spent: Spent) -> None:
        """One matmul of ``rows`` rows."""
        kind = KINDS[rows == 1]
        for phase in (self.kinds[kind], self.weights.setdefault((kind, name), Phase())):
            phase.add(rows, spent)

    def report(self) -> dict[str, Any]:
        """By kind the sums and ``matmuls``, a row for each weight; ``note`` belongs to every figure."""
        found: dict[str, Any] = {"simulated": self.simulated, "note": self.note}
        for kind in KINDS:
            rows = [{"name": name, **phase.as_json()} for (own, name), phase in self.weights.items() if own == kind]
            found[kind] = {**self.kinds[kind].as_json(), "matmuls": rows}
        return found


def phase_lines(report: dict[str, Any]) -> list[str]:
    """The report for a terminal; nothing for kinds that did not run."""
    lines = []
    for kind in KINDS:
        phase = report[kind]
        if not phase["calls"]:
            continue
        shares = ", ".join(f"{name} {100 * phase[f'{name}_share']:.1f}%" for name in ("prepare", "run", "collect"))
        per_call = (phase["prepare_ns"] + phase["run_ns"] + phase["collect_ns"]) / phase["calls"] / 1e3
        lines.append(f"{kind}: {phase['calls']} matmuls, {per_call:,.0f} us each: {shares}")
    if lines and report["note"]:
        lines.append(report["note"])
    return lines
