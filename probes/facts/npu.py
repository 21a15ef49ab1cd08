# SPDX-License-Identifier: Apache-2.0
"""NPU: cores, clock, voltage, SRAM, power state, load. At level quick nothing here resumes the device.

The debugfs files ``freq`` and ``volt`` and every ioctl of the driver would: they are not touched. The devfreq ``load``
file of the NPU is a constant (``100@...``) and is not used.
"""

from __future__ import annotations

from typing import Any

from probes.answers import Answer
from probes.facts.parse import clock_rate, hertz, integer, integers, npu_load, sram_totals, trans_stat, words
from probes.facts.sheet import Pen
from probes.facts.soc_table import SOCS
from reports.contract import Provenance


def load(pen: Pen) -> None:
    """``npu.load_percent`` (per core, one-second window), ``npu.power_state`` and SRAM: debugfs, else procfs."""
    for key, name, parse in (("npu.load_percent", "load", npu_load), ("npu.power_state", "power", _on_off)):
        answer = _counter(pen, name)
        pen.take(key, answer, parse(answer.value))
    answer = _counter(pen, "mm")
    totals = sram_totals(answer.value)
    pen.take("npu.sram_total_bytes", answer, totals[0] if totals else None)
    pen.take("npu.sram_free_bytes", answer, totals[1] if totals else None)


def _counter(pen: Pen, name: str) -> Answer[str]:
    """One file of the driver: below debugfs, or below /proc where the driver was built that way."""
    first = pen.system.text(f"/sys/kernel/debug/rknpu/{name}", limit=65536)
    other = pen.system.text(f"/proc/rknpu/{name}", limit=65536)
    return other if first.value is None and other.value is not None else first


def _on_off(text: str | None) -> str | None:
    word = (text or "").strip()
    return word if word in ("on", "off") else None


def clocks(pen: Pen) -> None:
    """``npu.clock_*``, ``npu.governor``, ``npu.residency``, ``npu.voltage_uv``, ``npu.runtime_status``."""
    system = pen.system
    base = _devfreq(pen)
    fields: tuple[tuple[str, str, Any], ...] = (
        ("npu.clock_now_hz", "cur_freq", hertz),
        ("npu.clock_min_hz", "min_freq", hertz),
        ("npu.clock_max_hz", "max_freq", hertz),
        ("npu.governor", "governor", lambda text: (text or "").strip()[:40] or None),
        (
            "npu.clock_available_hz",
            "available_frequencies",
            lambda text: sorted(integers(text, 1, 20_000_000_000)) or None,
        ),
        ("npu.governors_available", "available_governors", lambda text: words(text) or None),
        ("npu.residency", "trans_stat", lambda text: [row._asdict() for row in trans_stat(text)] or None),
    )
    for key, name, parse in fields:
        if base is None:
            pen.put(key, None, "/sys/class/devfreq", reason="/sys/class/devfreq: no entry of the NPU")
            continue
        answer = system.text(f"{base}/{name}", limit=65536)
        pen.take(key, answer, parse(answer.value))
    summary = system.text("/sys/kernel/debug/clk/clk_summary", limit=1024 * 1024)
    rate = clock_rate(summary.value, ("scmi_clk_npu", "clk_scmi_npu", "clk_npu"))
    pen.take("npu.clock_tree_hz", summary, rate)
    _voltage(pen)
    states = [row.get("runtime_status") for row in pen.sheet.rows("npu.platform_devices")]
    state = next((text for text in states if text), None)
    pen.put(
        "npu.runtime_status", state, "/sys/bus/platform/devices/*.npu/power", reason="no NPU device, or not readable"
    )
    numbers = pen.sheet.table("klog.numbers")
    bins = {key: value for key, value in numbers.items() if key.startswith("npu_") and isinstance(value, int)}
    pen.put("npu.boot_numbers", bins or None, "kernel log", reason="no such line in the kernel log, or no log")


def _devfreq(pen: Pen) -> str | None:
    names = [name for name in pen.system.names("/sys/class/devfreq").value or [] if name.endswith((".npu", ".rknpu"))]
    if names:
        return f"/sys/class/devfreq/{names[0]}"
    for row in pen.sheet.rows("npu.platform_devices"):
        base = f"/sys/bus/platform/devices/{row['name']}/devfreq"
        inner = pen.system.names(base).value
        if inner:
            return f"{base}/{inner[0]}"
    return None


def _voltage(pen: Pen) -> None:
    base = "/sys/class/regulator"
    for name in (pen.system.names(base).value or [])[:256]:
        label = (pen.system.text(f"{base}/{name}/name", limit=256).value or "").strip()
        if not label.startswith("vdd_npu") or "mem" in label:
            continue
        answer = pen.system.text(f"{base}/{name}/microvolts", limit=256)
        pen.put("npu.regulator", label, f"{base}/{name}/name")
        pen.take("npu.voltage_uv", answer, integer(answer.value, 1, 5_000_000))
        state = pen.system.text(f"{base}/{name}/state", limit=256)
        pen.take("npu.regulator_state", state, (state.value or "").strip()[:20] or None)
        return
    reason = f"{base}: no regulator named vdd_npu*"
    for key in ("npu.regulator", "npu.voltage_uv", "npu.regulator_state"):
        pen.put(key, None, base, reason=reason)


def cores(pen: Pen) -> None:
    """``npu.cores``: the driver's own count where it can be read, the device count of split layouts, else the table."""
    sheet = pen.sheet
    seen = sheet.items_of("npu.load_percent")
    name = (sheet.text("soc.name") or "").split(" or ")[0]
    row = SOCS.get(name)
    bound = [item for item in sheet.rows("npu.platform_devices") if item.get("driver")]
    if seen:
        pen.put("npu.cores", len(seen), sheet.source("npu.load_percent"))
    elif sheet.text("npu.stack") in ("rocket", "out-of-tree-split") and bound:
        pen.put("npu.cores", len(bound), "/sys/bus/platform/devices/*.npu")
    else:
        pen.assume("npu.cores", row.cores if row else None, "SoC table", "the SoC is unknown, so its NPU cores are")
    tops = row.rated_tops if row else None
    pen.assume("npu.rated_tops", tops, "vendor data sheet (INT8)", "no sourced figure for this SoC")
    numbers = sheet.table("klog.numbers")
    for key in ("sram_bytes", "nbuf_bytes"):
        if key in numbers:
            pen.put(f"npu.{key}", numbers[key], "kernel log")
    pen.put(
        "npu.hw_version",
        None,
        "driver ioctl",
        reason="asking would wake the NPU; not at this level",
        provenance=Provenance.READ,
    )
