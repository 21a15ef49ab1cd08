# SPDX-License-Identifier: Apache-2.0
"""Main memory: type, clock, governor, width, and the theoretical GB/s with how each was derived.

Theory is MT/s x bits / 8, MT/s being twice the clock. The list of clocks tells the type on vendor kernels (LPDDR4 and
LPDDR4X cannot be told apart that way). Without a ``dmc`` entry the clock is unknown, which is not the same as slow.
"""

from __future__ import annotations

from probes.facts.parse import clock_rate, dmcinfo, hertz, integer, integers, percent_at, trans_stat
from probes.facts.sheet import Pen
from probes.facts.soc_table import SOCS
from reports.contract import Provenance

DMC = "/sys/class/devfreq/dmc"
TYPES_BY_TOP_MHZ = {
    2112: "LPDDR4/LPDDR4X",
    1848: "LPDDR4/LPDDR4X",
    1560: "LPDDR4/LPDDR4X",
    2400: "LPDDR5",
    2736: "LPDDR5",
    3200: "LPDDR5",
}
"""Highest trained clock in MHz -> type, from the clock lists of public board logs."""


def collect(pen: Pen) -> None:
    """``ddr.*``."""
    system = pen.system
    listing = system.names("/sys/class/devfreq")
    present = None if listing.value is None else "dmc" in listing.value
    pen.put("ddr.devfreq_present", present, DMC, reason=listing.reason)
    now = system.text(f"{DMC}/cur_freq", limit=256)
    clocks = system.text(f"{DMC}/available_frequencies", limit=4096)
    available = sorted(integers(clocks.value, 1, 20_000_000_000))
    info_answer = system.text("/proc/dmcdbg/dmcinfo", limit=16384)
    info = dmcinfo(info_answer.value)
    tree = system.text("/sys/kernel/debug/clk/clk_summary", limit=1024 * 1024)
    from_tree = clock_rate(tree.value, ("scmi_clk_ddr", "clk_scmi_ddr"))
    clock = hertz(now.value) or (info["clock_hz"] if isinstance(info.get("clock_hz"), int) else None) or from_tree
    pen.put("ddr.clock_now_hz", clock, now.path if now.value else tree.path, reason=now.reason)
    pen.put("ddr.available_hz", available or None, clocks.path, reason=clocks.reason)
    for key, name in (("ddr.governor", "governor"),):
        answer = system.text(f"{DMC}/{name}", limit=256)
        pen.take(key, answer, (answer.value or "").strip()[:40] or None)
    load = system.text(f"{DMC}/load", limit=256)
    percent = percent_at(load.value)
    pen.take("ddr.load_percent", load, percent[0] if percent else None)
    stat = system.text(f"{DMC}/trans_stat", limit=65536)
    pen.take("ddr.residency", stat, [row._asdict() for row in trans_stat(stat.value)] or None)
    top = available[-1] if available else from_tree or (info.get("clock_hz") if info else None)
    pen.put(
        "ddr.clock_max_hz",
        top,
        clocks.path,
        reason=f"{clocks.reason}; the clock is set by the boot loader and not shown",
    )
    _kind(pen, info, available)
    _theory(pen, info, top if isinstance(top, int) else None)
    pen.put(
        "ddr.atf_version",
        pen.sheet.table("klog.numbers").get("dmc_atf"),
        "kernel log",
        reason="no dmc line in the kernel log, or no log",
    )
    counters = "/sys/bus/event_source/devices/rockchip_ddr/type"
    pen.put("ddr.counters_present", system.exists(counters), counters)
    paranoid = system.text("/proc/sys/kernel/perf_event_paranoid", limit=64)
    level = integer(paranoid.value, -10, 10)
    pen.take("ddr.counters_permitted", paranoid, None if level is None else level <= 0 or system.live.uid == 0)


def _kind(pen: Pen, info: dict[str, str | int], available: list[int]) -> None:
    if "type" in info:
        pen.put("ddr.type", info["type"], "/proc/dmcdbg/dmcinfo")
        return
    top_mhz = round(available[-1] / 1e6) if available else 0
    guess = TYPES_BY_TOP_MHZ.get(top_mhz)
    family = pen.sheet.text("soc.family")
    if guess and top_mhz == 1560 and family not in ("rk356x", "rk3562"):
        guess = "LPDDR4/LPDDR4X" if family == "rk3588" else None
    why = f"no memory is known with {top_mhz} MHz as its highest clock" if available else "no list of memory clocks"
    pen.assume("ddr.type", guess, f"{DMC}/available_frequencies, the highest of them", why)


def _theory(pen: Pen, info: dict[str, str | int], top_hz: int | None) -> None:
    row = SOCS.get((pen.sheet.text("soc.name") or "").split(" or ")[0])
    told = info.get("width_bits")
    width = told if isinstance(told, int) else row.ddr_bits if row else None
    source, how = ("/proc/dmcdbg/dmcinfo", Provenance.READ) if told else ("SoC table", Provenance.ASSUMED)
    pen.put("ddr.width_bits", width, source, provenance=how, reason="the SoC is unknown")
    rate = round(top_hz * 2 / 1e6) if top_hz else None
    pen.put(
        "ddr.rate_mtps",
        rate,
        "twice the highest clock",
        provenance=Provenance.ASSUMED,
        reason=pen.sheet.reason("ddr.clock_max_hz"),
    )
    theory = round(rate * int(width) / 8 / 1000, 1) if rate and width else None
    reason = "needs the highest memory clock and the width of the bus"
    pen.put(
        "ddr.theoretical_gbps",
        theory,
        f"{rate} MT/s x {width} bits / 8" if theory else "clock and width",
        provenance=Provenance.ASSUMED,
        reason=reason,
    )
