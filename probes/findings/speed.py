# SPDX-License-Identifier: Apache-2.0
"""Conditions that make a healthy board slow: clocks, governors, heat, interrupts. The kit prints commands only."""

from __future__ import annotations

from collections.abc import Iterator

from probes.facts.sheet import FactSheet
from probes.findings.common import evidence, has_rknpu
from reports.catalogue import make_finding
from reports.contract import Finding

SLOW_GOVERNORS = frozenset({"powersave", "conservative"})
CAP_C = 85.0
CAP_HZ = 800_000_000
ENOUGH_INTERRUPTS = 1000
"""Fewer say nothing about who serves them: the first ones always land on processor 0."""
_CPU = "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor"
_TREE_CLOCK = (
    "Use a kernel whose device tree sets the NPU clock (assigned-clock-rates); do not write it by hand: boards hang."
)
_DMC = "echo performance | sudo tee /sys/class/devfreq/dmc/governor"


def memory_clock(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.flag("ddr.devfreq_present") is not False or sheet.flag("soc.is_rockchip") is not True:
        return
    atf = sheet.text("ddr.atf_version")
    if atf is not None and int(atf, 16) == 0:
        yield make_finding("NPU-P010", evidence(sheet, "ddr.atf_version", "ddr.devfreq_present"), atf=atf)
    elif sheet.number("ddr.clock_now_hz") is None:
        yield make_finding("NPU-P013", evidence(sheet, "ddr.devfreq_present", "ddr.clock_now_hz"))


def memory_never_fast(sheet: FactSheet) -> Iterator[Finding]:
    rows = sheet.rows("ddr.residency")
    top, now = sheet.number("ddr.clock_max_hz"), sheet.number("ddr.clock_now_hz")
    if len(rows) < 2 or not top or not now or now >= top or sum(row["ms"] for row in rows) < 60_000:
        return
    if not any(row["ms"] for row in rows if row["hz"] >= top * 0.99):
        yield make_finding(
            "NPU-P017",
            evidence(sheet, "ddr.residency", "ddr.governor"),
            top_mhz=round(top / 1e6),
            now_mhz=round(now / 1e6),
            share=100 * now / top,
        )


def npu_clock(sheet: FactSheet) -> Iterator[Finding]:
    """A clock parked at 200 MHz in suspend is normal on vendor kernels; elsewhere it is where the NPU works."""
    available = sheet.items_of("npu.clock_available_hz")
    top = max((hz for hz in available if isinstance(hz, int)), default=None)
    now, reason = _stuck_at(sheet, top)
    if now is None:
        return
    command = _npu_governor(sheet) or _TREE_CLOCK
    yield make_finding(
        "NPU-P011",
        evidence(sheet, "npu.clock_now_hz", "npu.clock_tree_hz", "npu.boot_numbers", "npu.residency"),
        now_mhz=round(now / 1e6),
        of=f" of {round(top / 1e6)}" if top and top > now else "",
        reason=reason,
        command=command,
    )


def _npu_governor(sheet: FactSheet) -> str | None:
    """The command that pins the NPU's clock, where that is safe: boards with an out-of-tree driver hang on it."""
    path = sheet.source("npu.governor")
    known = "performance" in sheet.items_of("npu.governors_available") and path.endswith("/governor")
    vendor = sheet.text("npu.stack") in ("vendor-drm", "vendor-misc")
    return f"echo performance | sudo tee {path}" if vendor and known else None


def _stuck_at(sheet: FactSheet, top: int | None) -> tuple[int | float | None, str]:
    stack = sheet.text("npu.stack")
    low = 300_000_000
    tree = sheet.number("npu.clock_tree_hz")
    if stack == "rocket" and tree is not None and tree < low:
        return tree, "The mainline driver leaves the clock where the boot loader put it."
    if stack in ("out-of-tree-merged", "out-of-tree-split"):
        boot = sheet.table("npu.boot_numbers").get("npu_first_clock_hz")
        now = sheet.number("npu.clock_now_hz") or tree or boot
        if isinstance(now, (int, float)) and now < low:
            return now, "The driver on a mainline kernel keeps the clock that the boot loader set."
    if not has_rknpu(sheet):
        return None, ""
    load = sheet.items_of("npu.load_percent")
    now = sheet.number("npu.clock_now_hz")
    working = any(isinstance(percent, int) and percent >= 50 for percent in load) or bool(sheet.number("npu.irq_delta"))
    if working and now and top and now < 0.5 * top:
        return now, "It is working right now, and the governor did not raise the clock."
    if working and tree is not None and top and tree < 0.5 * top:
        return tree, "It is working right now, and the clock behind it is still parked."
    rows = sheet.rows("npu.residency")
    used = (sheet.number("npu.irq_total") or 0) > ENOUGH_INTERRUPTS
    if used and len(rows) > 1 and top and not any(row["ms"] for row in rows if row["hz"] > rows[0]["hz"]):
        return rows[0]["hz"], "It has worked since boot and never left its lowest clock."
    return None, ""


def npu_limited(sheet: FactSheet) -> Iterator[Finding]:
    top = max((hz for hz in sheet.items_of("npu.clock_available_hz") if isinstance(hz, int)), default=None)
    limit = sheet.number("npu.clock_max_hz")
    if not top or not limit or limit >= top:
        return
    temperature = sheet.number("thermal.npu_c")
    if limit <= CAP_HZ and temperature is not None and temperature >= CAP_C - 10:
        sign = f"NPU limited to {round(limit / 1e6)} MHz at {temperature:.0f} C"
        yield make_finding("NPU-P015", evidence(sheet, "npu.clock_max_hz", "thermal.npu_c"), sign=sign)
    else:
        yield make_finding(
            "NPU-P018",
            evidence(sheet, "npu.clock_max_hz", "npu.clock_available_hz"),
            max_mhz=round(limit / 1e6),
            top_mhz=round(top / 1e6),
            top_hz=top,
            path=sheet.source("npu.clock_max_hz"),
        )


def heat(sheet: FactSheet) -> Iterator[Finding]:
    active = [row for row in sheet.rows("thermal.cooling") if row.get("state") and "thermal-" in str(row["type"])]
    temperature = sheet.number("thermal.npu_c")
    if active:
        names = ", ".join(f"{row['type']} at {row['state']} of {row['max_state']}" for row in active[:3])
        yield make_finding("NPU-P015", evidence(sheet, "thermal.cooling", "thermal.max_c"), sign=names)
    elif temperature is not None and temperature >= CAP_C and sheet.number("npu.clock_max_hz") is None:
        yield make_finding("NPU-P015", evidence(sheet, "thermal.npu_c"), sign=f"NPU at {temperature:.0f} C")


def governors(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.flag("soc.is_rockchip") is not True:
        return
    seen: list[tuple[str, str]] = []
    for row in sheet.rows("cpu.clusters"):
        if row.get("governor"):
            seen.append((f"cpu policy{row['policy']} {row['governor']}", str(row["governor"])))
    for key, label in (("ddr.governor", "memory"), ("npu.governor", "NPU")):
        name = sheet.text(key)
        if name:
            seen.append((f"{label} {name}", name))
    slow = [label for label, name in seen if name in SLOW_GOVERNORS]
    default = [label for label, name in seen if name not in SLOW_GOVERNORS | {"performance"}]
    pinned = (_CPU, _DMC if sheet.text("ddr.governor") else None, _npu_governor(sheet))
    command = "; ".join(part for part in pinned if part)
    shown = evidence(sheet, "cpu.governors", "ddr.governor", "npu.governor")
    if slow:
        yield make_finding("NPU-P012", shown, governors=", ".join(slow), command=command)
    elif default:
        yield make_finding("NPU-P014", shown, governors=", ".join(default), command=command)


def interrupts(sheet: FactSheet) -> Iterator[Finding]:
    little = sheet.items_of("cpu.little_cpus")
    rows = [row for row in sheet.rows("npu.irqs") if row.get("count")]
    if sum(row["count"] for row in rows) < ENOUGH_INTERRUPTS:
        return
    served = {cpu for row in rows for cpu in row["served_by"]}
    if len(served) == 1 and served <= set(little):
        clusters = [row["cpus"] for row in sheet.rows("cpu.clusters") if not set(row["cpus"]) & set(little)]
        big = clusters[0][0] if clusters and clusters[0] else None
        numbers = " ".join(str(row["irq"]) for row in rows)
        command = f"for n in {numbers}; do echo {big} | sudo tee /proc/irq/$n/smp_affinity_list; done"
        if big is not None:
            yield make_finding("NPU-P016", evidence(sheet, "npu.irqs"), cpu=next(iter(served)), command=command)


RULES = (memory_clock, memory_never_fast, npu_clock, npu_limited, heat, governors, interrupts)
