# SPDX-License-Identifier: Apache-2.0
"""Interrupts of the NPU: counts per processor, affinity, and how many arrive in a short window.

The count is world-readable and is the best sign of a busy NPU without root.
"""

from __future__ import annotations

import time
from typing import Any

from probes.facts.parse import Interrupt, cpu_list, interrupts
from probes.facts.sheet import Pen
from reports.contract import Provenance

WINDOW_S = 0.25
PATH = "/proc/interrupts"


def collect(pen: Pen) -> None:
    """``npu.irqs``, ``npu.irq_total``, ``npu.irq_delta``. The window is waited for on a real board alone."""
    answer = pen.system.text(PATH, limit=4 * 1024 * 1024)
    before = interrupts(answer.value, ".npu")
    if not before:
        why = answer.reason if answer.value is None else f"{PATH}: no row of the NPU"
        for key in ("npu.irqs", "npu.irq_total", "npu.irq_delta"):
            pen.put(key, None, PATH, reason=why)
        return
    pen.put("npu.irqs", [_row(pen, item) for item in before], PATH)
    pen.put("npu.irq_total", _total(before), PATH)
    if pen.system.is_live:
        time.sleep(WINDOW_S)
    after = interrupts(pen.system.text(PATH, limit=4 * 1024 * 1024, again=True).value, ".npu")
    delta = max(0, _total(after) - _total(before)) if after else None
    pen.put(
        "npu.irq_delta",
        delta,
        f"{PATH}, twice in {WINDOW_S} s",
        provenance=Provenance.MEASURED,
        reason="second reading failed",
    )


def _row(pen: Pen, item: Interrupt) -> dict[str, Any]:
    base = f"/proc/irq/{item.number}"
    served = [cpu for cpu, count in enumerate(item.counts) if count]
    return {
        "irq": item.number,
        "label": item.label[:120],
        "count": sum(item.counts),
        "served_by": served,
        "affinity": cpu_list(pen.system.text(f"{base}/smp_affinity_list", limit=1024).value),
        "effective": cpu_list(pen.system.text(f"{base}/effective_affinity_list", limit=1024).value),
    }


def _total(rows: list[Interrupt]) -> int:
    return sum(sum(row.counts) for row in rows)
