# SPDX-License-Identifier: Apache-2.0
"""All measurements, in the order they run, and which of them a request asks for."""

from __future__ import annotations

from collections.abc import Sequence

from probes.measurements import cost, cpu, gemm, limits, memory, scaling, soak, stream, types
from probes.measurements.spec import LONG, MEDIUM, Setting, Spec

__all__ = ["LONG", "MEASUREMENTS", "MEDIUM", "SelectionError", "Setting", "Spec", "listing", "select"]

MEASUREMENTS: tuple[Spec, ...] = (
    types.SPEC,
    gemm.SPEC,
    scaling.SPEC,
    cost.SPEC,
    limits.SPEC,
    stream.SPEC,
    memory.LEAKS,
    cpu.BANDWIDTH,
    cpu.RATE,
    soak.SPEC,
    *memory.RISKY,
)


class SelectionError(ValueError):
    """What was asked for does not go together. The text is fit for the user."""


def select(level: str, only: Sequence[str] = (), *, allow_risky: bool = False) -> tuple[Spec, ...]:
    """The measurements of a level, or those named by ``only``, in the order of the table."""
    known = {spec.name: spec for spec in MEASUREMENTS}
    for name in only:
        if name not in known:
            raise SelectionError(f"--only {name} names no measurement. There are: {', '.join(known)}.")
        if level not in known[name].levels:
            needed = " or ".join(sorted(known[name].levels))
            raise SelectionError(f"--only {name} is no part of level {level}. Add --level {needed}.")
        if known[name].risky and not allow_risky:
            raise SelectionError(f"--only {name} goes to limits that have hung boards. Add --allow-risky to run it.")
    chosen = [spec for spec in MEASUREMENTS if level in spec.levels and (allow_risky or not spec.risky)]
    return tuple(spec for spec in chosen if not only or spec.name in only)


def listing() -> str:
    """Every measurement with its texts, for ``--list``."""
    lines = []
    for spec in MEASUREMENTS:
        levels = ", ".join(sorted(spec.levels, reverse=True)) + (", with --allow-risky" if spec.risky else "")
        lines += [
            f"{spec.name}  (level {levels})",
            f"    {spec.what}",
            f"    How: {spec.how}",
            f"    Spoiled by: {spec.spoiled_by}",
        ]
    return "\n".join(lines) + "\n"
