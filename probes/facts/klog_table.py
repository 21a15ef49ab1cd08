# SPDX-License-Identifier: Apache-2.0
"""Kernel-log lines about the NPU: what each means. First match wins; matched by key words, not by punctuation.

``benign`` lines look alarming and are not (they stand in the logs of healthy boards); ``info`` lines carry facts;
``fault`` lines are trouble. Sources: strings of the vendor kernel driver 0.9.8 and public board logs.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class LineClass(NamedTuple):
    name: str
    kind: str
    pattern: re.Pattern[str]


def _row(name: str, kind: str, pattern: str) -> LineClass:
    return LineClass(name, kind, re.compile(pattern, re.IGNORECASE))


CLASSES: tuple[LineClass, ...] = (
    _row("region-claim", "benign", r"(?:rknpu|\.npu).*can't request region for resource"),
    _row("power-model", "benign", r"(?:rknpu|\.npu).*(?:power[_ ]model|dynamic-coefficient)"),
    _row("leakage-missing", "benign", r"failed to get leakage"),
    _row("device-link-exists", "benign", r"could not add device link \S*npu\S*: -EEXIST"),
    _row("out-of-tree-taint", "benign", r"\brknpu: loading out-of-tree module taints kernel"),
    _row("iommu-on", "info", r"rknpu iommu is enabled, using iommu mode"),
    _row("iommu-off", "info", r"rknpu iommu (?:is disabled|device-tree entry not found).*non-iommu mode"),
    _row("iommu-group", "info", r"\.npu: adding to iommu group \d+"),
    _row("initialized", "info", r"initialized (?:rknpu|rocket)\b"),
    _row("initialized", "info", r"initialized rknpu driver"),
    _row("rocket-core", "info", r"rockchip npu core \d+ version"),
    _row("speed-bin", "info", r"(?:rknpu|\.npu).*\b(?:bin|leakage|pvtm|pvtm-volt-sel|avs)\s?=\s?-?\d+"),
    _row("thermal-policy", "info", r"(?:rknpu|\.npu).*\bh_limit=\d+"),
    _row("on-chip-memory", "info", r"rknpu.*(?:sram|nbuf) region"),
    _row("first-clock", "info", r"rknpu.*devfreq enabled, initial freq"),
    _row("domain-switch-timeout", "fault", r"switch iommu domain time out"),
    _row("domain-switch", "info", r"rknpu.*switch iommu domain from \d+ to \d+"),
    _row("domain-mismatch", "fault", r"mismatch domain get from iommu_get_domain_for_dev"),
    _row("domain-invalid", "info", r"invalid iommu domain id"),
    _row("pm-runtime", "fault", r"failed to get pm runtime for npu\d*, ret: -\d+"),
    _row("pmdomain-ack", "fault", r"failed to get ack on domain '[^']*npu"),
    _row("pvtpll", "fault", r"rockchip_pvtpll_set_volt_sel: error cfg clk_id=6\b"),
    _row("job-timeout", "fault", r"rknpu.*(?:job timeout|failed to wait job)"),
    _row("job-status", "fault", r"rknpu.*irq status: 0x[0-9a-f]+, raw status"),
    _row("job-timeout", "fault", r"rocket.*npu job timed out|\bnpu job timed out"),
    _row("job-wait", "info", r"rknpu: job: "),
    _row("soft-reset", "info", r"rknpu: soft reset"),
    _row("job-abort", "fault", r"rknpu.*job abort"),
    _row("iova-full", "fault", r"failed to allocate iova: -12|rknpu.*failed to allocate handles?"),
    _row("iommu-stall", "fault", r"rk_iommu (?:fdab|fdac|fdad|2770|fde4|ff30)\S*.*enable stall request timed out"),
    _row("iommu-fault", "fault", r"rk_iommu (?:fdab|fdac|fdad|2770|fde4|ff30)\S*: page fault"),
    _row("iommu-fault-detail", "info", r"rk_iommu (?:fdab|fdac|fdad|2770|fde4|ff30)\S*: (?:iova|mmu_dte_addr)"),
    _row("supplier-missing", "fault", r"\.npu: (?:deferred probe pending|.*wait for supplier)"),
    _row(
        "probe-failed",
        "fault",
        r"\.npu: probe with driver \S+ failed|(?:rknpu|\.npu).*(?:request_irq|request irq)\S* -?\d+",
    ),
    _row("probe-failed", "fault", r"(?:rknpu|rocket): probe of \S+\.npu failed with error -\d+"),
    _row("regulator-cleanup", "info", r"vdd_npu\S*: disabling"),
    _row("swiotlb-full", "fault", r"(?:rknpu|\.npu).*swiotlb buffer is full"),
    _row("dmc-atf", "info", r"rockchip-dmc dmc: current atf version 0x"),
    _row("dmc", "info", r"rockchip-dmc dmc:"),
)

STAMP = re.compile(r"^(?:<\d+>)?(?:\[\s*\d+\.\d+\]\s*(?:\[\s*[TC]\d+\]\s*)?)?")
"""Level and time stamp in front of a line of the ring buffer."""


def classify(line: str) -> LineClass | None:
    """The class of one line; None for lines that are not about the NPU."""
    for row in CLASSES:
        if row.pattern.search(line):
            return row
    return None
