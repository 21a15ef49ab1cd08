# SPDX-License-Identifier: Apache-2.0
"""Temperatures, trip points and cooling. Zones are matched by type: their numbers differ per kernel."""

from __future__ import annotations

import re
from typing import Any

from probes.facts.parse import integer
from probes.facts.sheet import Pen

BASE = "/sys/class/thermal"


def collect(pen: Pen) -> None:
    """``thermal.zones``, ``thermal.npu_c``, ``thermal.max_c``, ``thermal.cooling``."""
    listing = pen.system.names(BASE)
    names = listing.value or []
    zones = [_zone(pen, name) for name in names if name.startswith("thermal_zone")][:64]
    zones = [zone for zone in zones if zone["type"]]
    pen.put("thermal.zones", zones if listing.value is not None else None, BASE, reason=listing.reason)
    temps = {str(zone["type"]): zone["temp_c"] for zone in zones if zone["temp_c"] is not None}
    npu = next((temp for name, temp in temps.items() if name.startswith("npu")), None)
    pen.put("thermal.npu_c", npu, BASE, reason="no zone of the NPU (RK356x has none), or not readable")
    pen.put("thermal.max_c", max(temps.values(), default=None), BASE, reason="no readable zone")
    cooling = []
    for name in [name for name in names if name.startswith("cooling_device")][:64]:
        kind = pen.system.text(f"{BASE}/{name}/type", limit=256).value
        now = integer(pen.system.text(f"{BASE}/{name}/cur_state", limit=64).value, 0, 10000)
        top = integer(pen.system.text(f"{BASE}/{name}/max_state", limit=64).value, 0, 10000)
        if kind:
            cooling.append({"type": kind.strip()[:60], "state": now, "max_state": top})
    pen.put("thermal.cooling", cooling, BASE)


def _zone(pen: Pen, name: str) -> dict[str, Any]:
    base = f"{BASE}/{name}"
    kind = pen.system.text(f"{base}/type", limit=256).value
    temp = integer(pen.system.text(f"{base}/temp", limit=64).value, -100_000, 300_000)
    trips = []
    for leaf in (pen.system.names(base).value or [])[:128]:
        match = re.fullmatch(r"trip_point_([0-9]{1,2})_temp", leaf)
        if not match:
            continue
        at = integer(pen.system.text(f"{base}/{leaf}", limit=64).value, -100_000, 300_000)
        label = pen.system.text(f"{base}/trip_point_{match.group(1)}_type", limit=64).value
        if at is not None:
            trips.append({"type": (label or "unknown").strip()[:20], "temp_c": at / 1000})
    return {
        "type": kind.strip()[:60] if kind else None,
        "temp_c": temp / 1000 if temp is not None else None,
        "trips": sorted(trips, key=lambda row: row["temp_c"]),
    }
