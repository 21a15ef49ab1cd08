# SPDX-License-Identifier: Apache-2.0
"""Kernel-log lines about the NPU: what each means. First match wins; matched by key words, not by punctuation.

``benign`` lines look alarming and are not (they stand in the logs of healthy boards); ``info`` lines carry facts;
``fault`` lines are trouble. Sources: strings of the vendor kernel driver 0.9.8 and public board logs.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class LineClass(NamedTuple):
    """``words``: one of them stands in every line of the class, in lower case. Looked for first: it is cheap."""

    name: str
    kind: str
    words: tuple[str, ...]
    pattern: re.Pattern[str]


def _row(name: str, kind: str, words: tuple[str, ...], pattern: str) -> LineClass:
    return LineClass(name, kind, words, re.compile(pattern))


CLASSES: tuple[LineClass, ...] = (
    _row("region-claim", "benign", ("request region",), r"(?:rknpu|\.npu).*can't request region for resource"),
    _row(
        "power-model",
        "benign",
        ("power_model", "power model", "dynamic-coefficient"),
        r"(?:rknpu|\.npu).*(?:power[_ ]model|dynamic-coefficient)",
    ),
    _row("leakage-missing", "benign", ("get leakage",), r"failed to get leakage"),
    _row("device-link-exists", "benign", ("device link",), r"could not add device link \S*npu\S*: -eexist"),
    _row("out-of-tree-taint", "benign", ("out-of-tree module",), r"\brknpu: loading out-of-tree module taints kernel"),
    _row("iommu-on", "info", ("using iommu mode",), r"rknpu iommu is enabled, using iommu mode"),
    _row(
        "iommu-off",
        "info",
        ("non-iommu mode",),
        r"rknpu iommu (?:is disabled|device-tree entry not found).*non-iommu mode",
    ),
    _row("iommu-group", "info", ("iommu group",), r"\.npu: adding to iommu group \d+"),
    _row("initialized", "info", ("initialized r",), r"initialized (?:rknpu|rocket)\b"),
    _row("initialized", "info", ("initialized r",), r"initialized rknpu driver"),
    _row("rocket-core", "info", ("npu core",), r"rockchip npu core \d+ version"),
    _row(
        "speed-bin",
        "info",
        ("bin=", "leakage", "pvtm", "avs"),
        r"(?:rknpu|\.npu).*\b(?:bin|leakage|pvtm|pvtm-volt-sel|avs)\s?=\s?-?\d+",
    ),
    _row("thermal-policy", "info", ("h_limit=",), r"(?:rknpu|\.npu).*\bh_limit=\d+"),
    _row("on-chip-memory", "info", ("sram region", "nbuf region"), r"rknpu.*(?:sram|nbuf) region"),
    _row("first-clock", "info", ("initial freq",), r"rknpu.*devfreq enabled, initial freq"),
    _row("domain-switch-timeout", "fault", ("iommu domain time out",), r"switch iommu domain time out"),
    _row("domain-switch", "info", ("switch iommu domain from",), r"rknpu.*switch iommu domain from \d+ to \d+"),
    _row("domain-mismatch", "fault", ("mismatch domain",), r"mismatch domain get from iommu_get_domain_for_dev"),
    _row("domain-invalid", "info", ("invalid iommu domain",), r"invalid iommu domain id"),
    _row("pm-runtime", "fault", ("pm runtime",), r"failed to get pm runtime for npu\d*, ret: -\d+"),
    _row("pmdomain-ack", "fault", ("ack on domain",), r"failed to get ack on domain '[^']*npu"),
    _row("pvtpll", "fault", ("pvtpll",), r"rockchip_pvtpll_set_volt_sel: error cfg clk_id=6\b"),
    _row(
        "job-timeout",
        "fault",
        ("job timeout", "wait job", "job timed out"),
        r"rknpu.*(?:job timeout|failed to wait job)",
    ),
    _row("job-status", "fault", ("irq status",), r"rknpu.*irq status: 0x[0-9a-f]+, raw status"),
    _row(
        "job-timeout",
        "fault",
        ("job timeout", "wait job", "job timed out"),
        r"rocket.*npu job timed out|\bnpu job timed out",
    ),
    _row("job-wait", "info", ("rknpu: job: ",), r"rknpu: job: "),
    _row("soft-reset", "info", ("soft reset",), r"rknpu: soft reset"),
    _row("job-abort", "fault", ("job abort",), r"rknpu.*job abort"),
    _row(
        "iova-full",
        "fault",
        ("iova", "allocate handle"),
        r"failed to allocate iova: -12|rknpu.*failed to allocate handles?",
    ),
    _row(
        "iommu-stall",
        "fault",
        ("stall request",),
        r"rk_iommu (?:fdab|fdac|fdad|2770|fde4|ff30)\S*.*enable stall request timed out",
    ),
    _row("iommu-fault", "fault", ("page fault",), r"rk_iommu (?:fdab|fdac|fdad|2770|fde4|ff30)\S*: page fault"),
    _row(
        "iommu-fault-detail",
        "info",
        ("iova", "mmu_dte_addr"),
        r"rk_iommu (?:fdab|fdac|fdad|2770|fde4|ff30)\S*: (?:iova|mmu_dte_addr)",
    ),
    _row(
        "supplier-missing",
        "fault",
        ("deferred probe", "wait for supplier"),
        r"\.npu: (?:deferred probe pending|.*wait for supplier)",
    ),
    _row(
        "probe-failed",
        "fault",
        ("probe with driver", "request_irq", "request irq", "failed with error"),
        r"\.npu: probe with driver \S+ failed|(?:rknpu|\.npu).*(?:request_irq|request irq)\S* -?\d+",
    ),
    _row(
        "probe-failed",
        "fault",
        ("probe with driver", "request_irq", "request irq", "failed with error"),
        r"(?:rknpu|rocket): probe of \S+\.npu failed with error -\d+",
    ),
    _row("regulator-cleanup", "info", ("disabling",), r"vdd_npu\S*: disabling"),
    _row("swiotlb-full", "fault", ("swiotlb",), r"(?:rknpu|\.npu).*swiotlb buffer is full"),
    _row("dmc-atf", "info", ("atf version",), r"rockchip-dmc dmc: current atf version 0x"),
    _row("dmc", "info", ("rockchip-dmc",), r"rockchip-dmc dmc:"),
)

STAMP = re.compile(r"^(?:<\d+>)?(?:\[\s*\d+\.\d+\]\s*(?:\[\s*[TC]\d+\]\s*)?)?")
"""Level and time stamp in front of a line of the ring buffer."""


def classify(line: str) -> LineClass | None:
    """The class of one line; None for lines that are not about the NPU."""
    text = line.lower()
    for row in CLASSES:
        if any(word in text for word in row.words) and row.pattern.search(text):
            return row
    return None
