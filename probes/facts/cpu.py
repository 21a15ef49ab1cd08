# SPDX-License-Identifier: Apache-2.0
"""Processors by cluster: a cpufreq policy is a cluster, MIDR names the core.

physical_package_id is not used: it differs by kernel on one and the same SoC.
"""

from __future__ import annotations

from typing import Any

from probes.facts.parse import LITTLE_PARTS, Midr, core_name, cpu_list, cpuinfo, integer, integers, midr, words
from probes.facts.sheet import Pen

BASE = "/sys/devices/system/cpu"
KHZ_MAX = 10_000_000


def collect(pen: Pen) -> None:
    """``cpu.count``, ``cpu.clusters``, ``cpu.governors``, ``cpu.little_cpus``, ``cpu.speed_bins``."""
    system = pen.system
    online = system.text(f"{BASE}/online", limit=4096)
    info = cpuinfo(system.text("/proc/cpuinfo", limit=1024 * 1024).value)
    cpus = cpu_list(online.value) or sorted(info)
    pen.put("cpu.count", len(cpus) or None, online.path, reason=online.reason)
    present = system.text(f"{BASE}/present", limit=4096)
    pen.take("cpu.present", present, len(cpu_list(present.value)) or None)
    parts = {cpu: _midr(pen, cpu) or info.get(cpu) for cpu in cpus[:64]}
    policies = [name for name in system.names(f"{BASE}/cpufreq").value or [] if name.startswith("policy")]
    rows = [_policy(pen, name, parts) for name in sorted(policies, key=_order)[:64]]
    if not rows and cpus:
        rows = _by_part(parts)
    pen.put("cpu.clusters", rows or None, f"{BASE}/cpufreq", reason=online.reason)
    pen.put("cpu.governors", sorted({str(row["governor"]) for row in rows if row["governor"]}), f"{BASE}/cpufreq")
    little = [cpu for cpu, fields in parts.items() if fields is not None and fields.part in LITTLE_PARTS]
    mixed = bool(little) and len(little) < len(cpus)
    pen.put("cpu.little_cpus", little if mixed else [], "MIDR")
    pen.put(
        "cpu.speed_bins",
        pen.sheet.table("klog.numbers").get("cpu_bins"),
        "kernel log",
        reason="no such line in the kernel log, or no log",
    )
    idle = system.text(f"{BASE}/cpu0/cpuidle/state1/disable", limit=64)
    pen.take("cpu.idle_state1_disabled", idle, {"0": False, "1": True}.get((idle.value or "").strip()))
    levels = _caches(pen, cpus)
    pen.put("cpu.last_cache_bytes", levels, f"{BASE}/cpu*/cache", reason="no cache description in sysfs")


def _order(name: str) -> int:
    return integer(name.removeprefix("policy")) or 0


def _midr(pen: Pen, cpu: int) -> Midr | None:
    return midr(pen.system.text(f"{BASE}/cpu{cpu}/regs/identification/midr_el1", limit=256).value)


def _policy(pen: Pen, name: str, parts: dict[int, Midr | None]) -> dict[str, Any]:
    base = f"{BASE}/cpufreq/{name}"

    def ask(leaf: str) -> str | None:
        return pen.system.text(f"{base}/{leaf}", limit=8192).value

    def khz(leaf: str) -> int | None:
        value = integer(ask(leaf), 1, KHZ_MAX)
        return value * 1000 if value else None

    cpus = cpu_list(ask("related_cpus"))
    first = cpus[0] if cpus else _order(name)
    capacity = pen.system.text(f"{BASE}/cpu{first}/cpu_capacity", limit=256).value
    available = sorted(value * 1000 for value in integers(ask("scaling_available_frequencies"), 1, KHZ_MAX))
    return {
        "policy": _order(name),
        "cpus": cpus,
        "core": core_name(parts.get(first)),
        "capacity": integer(capacity, 1, 65536),
        "governor": (ask("scaling_governor") or "").strip()[:40] or None,
        "governors_available": words(ask("scaling_available_governors")),
        "clock_now_hz": khz("scaling_cur_freq"),
        "clock_min_hz": khz("scaling_min_freq"),
        "clock_max_hz": khz("scaling_max_freq"),
        "hardware_max_hz": khz("cpuinfo_max_freq") or (available[-1] if available else None),
        "clock_available_hz": available,
    }


def _by_part(parts: dict[int, Midr | None]) -> list[dict[str, Any]]:
    """Without cpufreq: neighbours of the same part make a cluster."""
    rows: list[dict[str, Any]] = []
    last: object = object()
    for cpu, fields in parts.items():
        if fields != last or not rows:
            rows.append({"policy": None, "cpus": [], "core": core_name(fields), "capacity": None, "governor": None})
            last = fields
        rows[-1]["cpus"].append(cpu)
    return rows


def _caches(pen: Pen, cpus: list[int]) -> int | None:
    """Size of the highest cache level seen from the last processor."""
    if not cpus:
        return None
    base = f"{BASE}/cpu{cpus[-1]}/cache"
    best: tuple[int, int] | None = None
    for name in [name for name in pen.system.names(base).value or [] if name.startswith("index")][:8]:
        level = integer(pen.system.text(f"{base}/{name}/level", limit=64).value, 1, 4)
        size = (pen.system.text(f"{base}/{name}/size", limit=64).value or "").strip()
        bytes_ = integer(size[:-1], 1, 1 << 20) if size.endswith("K") else None
        if level and bytes_:
            best = max(best or (0, 0), (level, bytes_ * 1024))
    return best[1] if best else None
