# SPDX-License-Identifier: Apache-2.0
"""Who holds the NPU: open files of all processes that may be looked at, compared with the NPU's nodes.

Only the holder's own processes are visible without root, so an empty list is complete for root alone. The vendor driver
gives no usage per process: holding the node is all that can be seen.
"""

from __future__ import annotations

import re

from probes.facts.sheet import Pen

MAX_PROCESSES = 8192
MAX_FILES = 200_000


def collect(pen: Pen) -> None:
    """``tenants`` (pid, name, node), ``tenants.scan_complete``, ``npu.busy``."""
    nodes = {
        str(row["path"]): (row["rdev"][0], row["rdev"][1]) if row.get("rdev") else None
        for row in pen.sheet.rows("npu.device_nodes")
        if row.get("present")
    }
    if not nodes:
        why = "no device node of the NPU is visible here"
        pen.put("tenants", None, "/proc/*/fd", reason=why)
        pen.put("tenants.scan_complete", None, "/proc/*/fd", reason=why)
        _busy(pen)
        return
    listing = pen.system.names("/proc")
    pids = [name for name in listing.value or [] if re.fullmatch(r"[0-9]{1,10}", name)][:MAX_PROCESSES]
    found, closed, files = [], 0, 0
    for pid in pids:
        if int(pid) == pen.system.live.pid:
            continue
        answer = pen.system.holders(f"/proc/{pid}/fd", nodes)
        if answer.value is None:
            closed += answer.needs_root
            continue
        node, count = answer.value
        files += count
        if node:
            name = pen.system.text(f"/proc/{pid}/comm", limit=256).value or "unknown"
            found.append({"pid": int(pid), "name": name.strip()[:32], "node": node})
        if files > MAX_FILES:
            break
    pen.put("tenants", found, "/proc/*/fd")
    pen.put(
        "tenants.scan_complete",
        closed == 0 and files <= MAX_FILES,
        f"/proc/*/fd ({closed} processes closed to this user)",
    )
    _busy(pen)


def _busy(pen: Pen) -> None:
    """Busy if a core has load or interrupts arrive. None where nothing can tell."""
    load = pen.sheet.items_of("npu.load_percent")
    delta = pen.sheet.number("npu.irq_delta")
    if not load and delta is None:
        pen.put("npu.busy", None, "load and interrupts", reason="neither load nor interrupt counts are readable")
        return
    pen.put("npu.busy", any(percent > 0 for percent in load) or bool(delta), "load and interrupts")
