# SPDX-License-Identifier: Apache-2.0
"""IOMMU mode and the memory that the NPU can be given."""

from __future__ import annotations

from collections.abc import Iterator

from probes.facts.sheet import FactSheet
from probes.findings.common import GIB, MIB, evidence, fault, has_rknpu, is_rk356x
from probes.findings.klog import high_memory
from reports.catalogue import make_finding
from reports.contract import Finding

SMALL_CMA = 128 * MIB


def no_iommu(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.text("iommu.mode") != "non-iommu" or not has_rknpu(sheet) or sheet.text("soc.family") == "rv1106":
        return
    cma = sheet.number("memory.cma_total_bytes")
    shown = evidence(sheet, "iommu.mode", "memory.cma_total_bytes", "memory.cma_free_bytes")
    if cma is not None and cma < SMALL_CMA:
        yield make_finding("NPU-M010", shown, cma_mib=round(cma / MIB))
    else:
        yield make_finding("NPU-M011", shown, cma=f"{round(cma / MIB)} MiB" if cma else "size unknown")


def rk356x_memory(sheet: FactSheet) -> Iterator[Finding]:
    total = sheet.number("memory.total_bytes") or 0
    shown = evidence(sheet, "soc.name", "memory.total_bytes", "iommu.mode", "kernel.release")
    values = {"soc": sheet.text("soc.name"), "memory_gib": total / GIB}
    if high_memory(sheet) and fault(sheet, "job-timeout") is None:
        yield make_finding("NPU-M012", shown, **values)
    without = is_rk356x(sheet) and has_rknpu(sheet) and sheet.text("iommu.mode") == "non-iommu"
    if without and total > 3.8 * GIB:
        yield make_finding("NPU-M014", shown, **values)


RULES = (no_iommu, rk356x_memory)
