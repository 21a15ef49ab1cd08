# SPDX-License-Identifier: Apache-2.0
"""The temperature stop rule: when a run must pause or end for the board's sake."""

from __future__ import annotations

from collections.abc import Sequence

from probes.conditions.sample import Sample

STOP_C = 85.0
"""Above 85 degrees the rknpu driver caps the NPU at 800 MHz (its boot line ``h=85000 h_limit=800000000``),
so what is measured there is the cap. Trips of RK3588: passive 75 and 85, critical 115 degrees."""

MARGIN_C = 5.0
"""Distance kept to a passive or critical trip point."""


def stop_limit_c(trip_c: float | None, ceiling_c: float = STOP_C) -> float:
    """The temperature to stop at, for a zone whose lowest passive or critical trip is ``trip_c``."""
    return ceiling_c if trip_c is None else min(ceiling_c, trip_c - MARGIN_C)


def should_stop(samples: Sequence[Sample], ceiling_c: float = STOP_C) -> str | None:
    """A sentence that says why to stop, from the newest sample; None while every zone is below its limit."""
    if not samples:
        return None
    newest = samples[-1]
    over = [
        (degrees - limit, zone, degrees, limit)
        for zone, degrees in newest.temperature_c.items()
        if degrees >= (limit := stop_limit_c(newest.ranges.trips_c.get(zone), ceiling_c))
    ]
    if not over:
        return None
    _, zone, degrees, limit = max(over)
    return f"{zone} is at {degrees:.1f} C, the limit is {limit:.1f} C: let the board cool down before going on"
