# SPDX-License-Identifier: Apache-2.0
"""IOMMU of the NPU: mode, groups, address windows, and how sure that is.

One domain of a Rockchip IOMMU spans 4 GiB. The vendor driver has one window before 0.9.6 and up to 16 from then on, if
the kernel has CONFIG_NO_GKI (without it a domain switch reports success and does nothing); rocket gives each open file
its own window; without IOMMU there is contiguous memory (CMA) alone.
"""

from __future__ import annotations

from probes.facts.parse import version
from probes.facts.sheet import Pen
from probes.facts.soc_table import SOCS
from probes.facts.versions import MIN_DOMAINS
from reports.contract import Provenance

WINDOW_BYTES = 1 << 32


def collect(pen: Pen) -> None:
    """``iommu.*``."""
    mode, basis = _mode(pen)
    pen.put("iommu.mode", mode, basis, reason=basis)
    groups = sorted(
        {str(row["iommu_group"]) for row in pen.sheet.rows("npu.platform_devices") if row.get("iommu_group")}
    )
    pen.put("iommu.groups", groups, "/sys/bus/platform/devices/*.npu/iommu_group")
    kind = None
    if groups and groups[0].isdigit():
        answer = pen.system.text(f"/sys/kernel/iommu_groups/{groups[0]}/type", limit=256)
        kind = answer.value.strip()[:20] if answer.value else None
        pen.take("iommu.group_type", answer, kind)
    else:
        pen.put("iommu.group_type", None, "/sys/kernel/iommu_groups", reason="no group of the NPU")
    pen.put(
        "iommu.window_bytes",
        WINDOW_BYTES if mode in ("iommu", "per-open-file") else None,
        "Rockchip IOMMU page table",
        reason=f"mode is {mode or 'unknown'}",
        provenance=Provenance.ASSUMED,
    )
    _windows(pen, mode)
    row = SOCS.get((pen.sheet.text("soc.name") or "").split(" or ")[0])
    pen.assume(
        "iommu.dma_mask_bits",
        row.dma_mask_bits if row else None,
        "SoC table of the vendor driver",
        "the SoC is unknown",
    )


def _mode(pen: Pen) -> tuple[str | None, str]:
    sheet = pen.sheet
    stack = sheet.text("npu.stack")
    if stack in (None, "none"):
        return None, "no NPU driver is running"
    said = sheet.table("klog.numbers").get("iommu_mode")
    bound = [row for row in sheet.rows("npu.platform_devices") if row.get("driver")]
    grouped = any(row.get("iommu_group") for row in bound)
    if stack == "rocket":
        return "per-open-file", "rocket: each open file has its own domain"
    if said in ("iommu", "non-iommu"):
        return said, "kernel log line of the driver"
    if bound:
        return (
            ("iommu", "iommu_group link of the NPU device")
            if grouped
            else ("non-iommu", "the NPU device has no iommu_group link")
        )
    return None, "no line in the kernel log and no NPU device in sysfs"


def _windows(pen: Pen, mode: str | None) -> None:
    sheet = pen.sheet
    options = sheet.table("kernel.npu_options")
    driver = version(sheet.text("npu.driver_version"))
    windows: int | None = None
    sure = ""
    if mode == "non-iommu":
        windows, sure = 0, "exact: contiguous memory (CMA) alone"
    elif mode == "per-open-file":
        windows, sure = 1, "by design: one window per open file"
    elif mode == "iommu" and driver is not None:
        if driver < MIN_DOMAINS:
            windows, sure = 1, "by driver version (before 0.9.6)"
        elif options.get("CONFIG_NO_GKI") == "y":
            windows, sure = 16, "by driver version and CONFIG_NO_GKI=y; no call can ask"
        elif options:
            windows, sure = 1, "CONFIG_NO_GKI is off: domain switches do nothing"
        else:
            windows, sure = 16, "at most, by driver version; the kernel options are not readable"
    why = "no IOMMU mode known" if mode is None else "driver version unknown"
    pen.put(
        "iommu.windows", windows, sure or "driver version and kernel options", reason=why, provenance=Provenance.ASSUMED
    )
    pen.put("iommu.windows_sure", sure or None, "driver version and kernel options", reason=why)
