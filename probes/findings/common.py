# SPDX-License-Identifier: Apache-2.0
"""Questions about a sheet that several rules ask."""

from __future__ import annotations

from typing import Any

from probes.facts.parse import Version, version
from probes.facts.sheet import FactSheet

RKNPU_STACKS = ("vendor-drm", "vendor-misc", "out-of-tree-merged", "out-of-tree-split")
MIB = 1024 * 1024
GIB = 1024 * MIB


def has_rknpu(sheet: FactSheet) -> bool:
    """Whether the vendor driver, from whichever source, is running."""
    return sheet.text("npu.stack") in RKNPU_STACKS


def container(sheet: FactSheet) -> str | None:
    """The kind of container; None on a host."""
    kind = sheet.text("container.kind")
    return None if kind in (None, "none") else kind


def driver(sheet: FactSheet) -> Version | None:
    return version(sheet.text("npu.driver_version")) if has_rknpu(sheet) else None


def fault(sheet: FactSheet, name: str) -> dict[str, Any] | None:
    """The entry of one class of fault lines in the kernel log."""
    return next((row for row in sheet.rows("klog.faults") if row.get("class") == name), None)


def fault_count(sheet: FactSheet, name: str) -> int:
    row = fault(sheet, name)
    return int(row["count"]) if row else 0


def first_line(row: dict[str, Any]) -> str:
    lines = row.get("lines") or [""]
    return f"kernel log: {lines[0]}"


def os_name(sheet: FactSheet) -> str:
    return sheet.text("os.name") or "this distribution"


def is_rk356x(sheet: FactSheet) -> bool:
    return sheet.text("soc.family") == "rk356x"


def evidence(sheet: FactSheet, *keys: str) -> str:
    """``key = value (source)`` of the facts that show it."""
    parts = []
    for key in keys:
        value = sheet.value(key)
        shown = sheet.reason(key) if value is None else str(value)
        parts.append(f"{key} = {shown[:300]} ({sheet.source(key)})")
    return "; ".join(parts)
