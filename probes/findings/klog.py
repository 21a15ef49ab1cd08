# SPDX-License-Identifier: Apache-2.0
"""What the kernel log says went wrong since boot. Causes before their consequences; harmless lines as a note."""

from __future__ import annotations

from collections.abc import Iterator

from probes.facts.sheet import FactSheet
from probes.findings.common import GIB, evidence, fault, fault_count, first_line, is_rk356x
from reports.catalogue import make_finding
from reports.contract import Finding

_PLAIN = (
    ("pm-runtime", "NPU-K009"),
    ("pmdomain-ack", "NPU-K010"),
    ("pvtpll", "NPU-K011"),
    ("iommu-stall", "NPU-K022"),
    ("domain-switch-timeout", "NPU-K023"),
    ("domain-mismatch", "NPU-K024"),
    ("swiotlb-full", "NPU-M015"),
)
_RAW_STATUS = {
    "0x10000": "Raw status 0x10000 is a bus or DMA error.",
    "0x0": "Raw status 0x0: the job never started.",
}


def plain_faults(sheet: FactSheet) -> Iterator[Finding]:
    for name, code in _PLAIN:
        row = fault(sheet, name)
        if row is not None:
            yield make_finding(code, first_line(row))


def jobs(sheet: FactSheet) -> Iterator[Finding]:
    timeouts = fault(sheet, "job-timeout")
    if timeouts is not None:
        if high_memory(sheet):
            yield make_finding(
                "NPU-M013",
                first_line(timeouts),
                soc=sheet.text("soc.name"),
                memory_gib=(sheet.number("memory.total_bytes") or 0) / GIB,
            )
        raw = str(sheet.table("klog.numbers").get("raw_status", ""))
        status = _RAW_STATUS.get(raw, f"Raw status {raw}." if raw else "")
        yield make_finding("NPU-K020", first_line(timeouts), count=timeouts["count"], status=status)
    aborted = fault(sheet, "job-abort")
    if aborted is not None:
        yield make_finding("NPU-K026", first_line(aborted), count=aborted["count"])
    pages = fault(sheet, "iommu-fault")
    if pages is not None:
        yield make_finding("NPU-K021", first_line(pages), count=pages["count"])
    full = fault(sheet, "iova-full")
    if full is not None:
        windows = sheet.value("iommu.windows")
        yield make_finding("NPU-M016", first_line(full), windows=windows if windows is not None else "unknown")


def high_memory(sheet: FactSheet) -> bool:
    """RK356x, mainline kernel, IOMMU on, memory beyond 3.8 GiB: page tables may lie out of the IOMMU's reach."""
    return (
        is_rk356x(sheet)
        and sheet.text("kernel.flavour") == "mainline"
        and sheet.text("iommu.mode") in ("iommu", "per-open-file")
        and (sheet.number("memory.total_bytes") or 0) > 3.8 * GIB
        and not any(str(word).startswith("mem=") for word in sheet.items_of("kernel.arguments"))
    )


def wedged(sheet: FactSheet) -> Iterator[Finding]:
    """Faults that leave the device stuck, while its load says idle."""
    stuck = fault_count(sheet, "iommu-stall") + fault_count(sheet, "domain-switch-timeout")
    storm = fault_count(sheet, "job-timeout") >= 8
    load = sheet.items_of("npu.load_percent")
    if load and not any(load) and (stuck or storm):
        name = "iommu-stall" if fault(sheet, "iommu-stall") else "domain-switch-timeout" if stuck else "job-timeout"
        row = fault(sheet, name)
        yield make_finding("NPU-K025", f"{first_line(row or {})}; {evidence(sheet, 'npu.load_percent')}")


def harmless(sheet: FactSheet) -> Iterator[Finding]:
    count = sheet.table("klog.lines").get("benign") or 0
    rows = sheet.rows("klog.benign")
    if count and rows:
        yield make_finding("NPU-K090", first_line(rows[0]), count=count)


RULES = (plain_faults, jobs, wedged, harmless)
