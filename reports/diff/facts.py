# SPDX-License-Identifier: Apache-2.0
"""Facts of two reports beside each other: only those that changed, and down to the part that changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VOLATILE = (
    *("host.load1", "host.uptime_s", "memory.available_bytes", "memory.cma_free_bytes", "limits.files_open"),
    *("npu.load_percent", "npu.irq_total", "npu.irq_delta", "npu.busy", "npu.power_state", "npu.clock_now_hz"),
    *("npu.clock_tree_hz", "npu.regulator", "npu.runtime_status", "ddr.clock_now_hz", "ddr.load_percent"),
    *("ddr.residency", "klog.lines", "klog.benign", "tenants.scan_complete", "cpu.clock_now_hz"),
)
"""Keys whose values differ between any two looks at a healthy board."""
VOLATILE_BELOW = ("thermal.",)


@dataclass(frozen=True)
class FactChange:
    """``key`` with the path of the part that changed; a side that has no such fact, or does not know it, says why."""

    key: str
    before: str
    after: str
    volatile: bool


def compare_facts(before: dict[str, Any], after: dict[str, Any]) -> list[FactChange]:
    """The facts that differ, by key."""
    changes = []
    for key in sorted({*before, *after}):
        old, new = before.get(key), after.get(key)
        if old is not None and new is not None and old.get("value") == new.get("value"):
            continue
        volatile = key in VOLATILE or key.startswith(VOLATILE_BELOW)
        values = [fact.get("value") if fact else None for fact in (old, new)]
        if old and new and all(isinstance(value, (dict, list)) for value in values):
            parts = _parts(values[0], values[1], key)
        else:
            parts = [(key, _side(old), _side(new))]
        changes += [FactChange(*part, volatile) for part in parts]
    return changes


def _side(fact: dict[str, Any] | None) -> str:
    if fact is None:
        return "not in this report"
    if fact.get("value") is None:
        return f"unknown ({fact.get('reason')}{'; root could read it' if fact.get('needs_root') else ''})"
    return _text(fact["value"])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, dict)) and not value:
        return "none"
    if isinstance(value, list):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items())
    return "unknown" if value is None else str(value)


def _parts(old: Any, new: Any, path: str) -> list[tuple[str, str, str]]:
    """The smallest parts of two containers that differ. Lists of plain values are compared as sets are."""
    if old == new:
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        keys = [*old, *(key for key in new if key not in old)]
        return [
            part for key in keys for part in _parts(old.get(key, "absent"), new.get(key, "absent"), f"{path}.{key}")
        ]
    if isinstance(old, list) and isinstance(new, list):
        if any(isinstance(item, (dict, list)) for item in (*old, *new)):
            if len(old) == len(new):
                pairs = enumerate(zip(old, new, strict=True))
                return [part for index, pair in pairs for part in _parts(*pair, f"{path}[{index}]")]
        else:
            gone = [item for item in old if item not in new]
            come = [item for item in new if item not in old]
            if gone or come:
                return [(path, _text(gone) if gone else "-", _text(come) if come else "-")]
    return [(path, _text(old), _text(new))]
