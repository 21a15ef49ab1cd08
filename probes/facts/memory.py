# SPDX-License-Identifier: Apache-2.0
"""Memory the NPU can be given: totals, CMA, dma-heaps, swiotlb; and what the processors' side needs to know."""

from __future__ import annotations

import re

from probes.facts.parse import integer, meminfo
from probes.facts.sheet import Pen

_FIELDS = (
    ("memory.total_bytes", "MemTotal"),
    ("memory.available_bytes", "MemAvailable"),
    ("memory.swap_total_bytes", "SwapTotal"),
    ("memory.cma_total_bytes", "CmaTotal"),
    ("memory.cma_free_bytes", "CmaFree"),
)


def collect(pen: Pen) -> None:
    """``memory.*``, in bytes."""
    answer = pen.system.text("/proc/meminfo")
    table = meminfo(answer.value)
    for key, name in _FIELDS:
        reason = answer.reason if answer.value is None else f"/proc/meminfo: no {name}"
        pen.put(key, table.get(name), answer.path, reason=reason)
    heaps = []
    for base in ("/dev/dma_heap", "/dev/rk_dma_heap"):
        for name in (pen.system.names(base).value or [])[:32]:
            node = pen.system.node(f"{base}/{name}").value
            if node is not None:
                heaps.append({"path": f"{base}/{name}", "mode": f"{node.mode:04o}", "accessible": node.accessible})
    pen.put("memory.dma_heaps", heaps, "/dev/dma_heap")
    slabs = pen.system.text("/sys/kernel/debug/swiotlb/io_tlb_nslabs", limit=256)
    count = integer(slabs.value, 1, 1 << 32)
    boot = pen.sheet.table("klog.numbers").get("swiotlb_bytes")
    pen.put(
        "memory.swiotlb_bytes",
        count * 2048 if count else boot,
        slabs.path if count else "kernel log",
        reason=slabs.reason,
        needs_root=slabs.needs_root,
    )
    huge = pen.system.text("/sys/kernel/mm/transparent_hugepage/enabled", limit=256)
    chosen = re.search(r"\[(\w+)\]", huge.value or "")
    pen.take("memory.transparent_hugepage", huge, chosen.group(1) if chosen else None)
    commit = pen.system.text("/proc/sys/vm/overcommit_memory", limit=256)
    pen.take("memory.overcommit", commit, integer(commit.value, 0, 2))
