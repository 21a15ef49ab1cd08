# SPDX-License-Identifier: Apache-2.0
"""Kernel log: the lines about the NPU, classified; and the numbers they carry.

The ring buffer is taken by klogctl; where that is refused (``kernel.dmesg_restrict``), ``/var/log/dmesg`` of this boot.
"""

from __future__ import annotations

import re
from typing import Any

from probes.facts.klog_table import STAMP, classify
from probes.facts.parse import dotted, integer, version
from probes.facts.sheet import Pen

MAX_LINES = 40_000
"""A ring buffer of 4 MiB holds fewer; of a longer text the end counts, where the latest trouble is."""
MAX_LINE = 600
KEPT_PER_CLASS = 3


def collect(pen: Pen) -> None:
    """Facts ``klog.*``. A log that cannot be read makes each of them null with the reason."""
    text, source, reason = _log(pen)
    if text is None:
        for key in ("klog.lines", "klog.faults", "klog.benign", "klog.driver", "klog.numbers"):
            pen.put(key, None, source, reason=reason, needs_root="denied" in reason)
        return
    found = sort_lines(text)
    pen.put("klog.lines", found["counts"], source)
    pen.put("klog.faults", found["faults"], source)
    pen.put("klog.benign", found["benign"], source)
    pen.put("klog.driver", found["driver"], source, reason="no line of the log says that an NPU driver initialised")
    pen.put("klog.numbers", found["numbers"], source)


def _log(pen: Pen) -> tuple[str | None, str, str]:
    ring = pen.system.klog()
    if ring.value is not None:
        return ring.value, ring.path, ""
    saved = pen.system.text("/var/log/dmesg", limit=8 * 1024 * 1024)
    if saved.value is not None:
        return saved.value, "/var/log/dmesg", ""
    return None, ring.path, ring.reason


def sort_lines(text: str) -> dict[str, Any]:
    """Classify every line. Gives counts per kind, up to three examples per class, and the numbers in the lines."""
    counts = {"benign": 0, "info": 0, "fault": 0}
    faults: dict[str, dict[str, Any]] = {}
    benign: dict[str, dict[str, Any]] = {}
    driver: dict[str, Any] | None = None
    numbers: dict[str, Any] = {}
    for raw in text.splitlines()[-MAX_LINES:]:
        line = STAMP.sub("", raw[:MAX_LINE]).strip()
        if not line:
            continue
        _common_numbers(line, numbers)
        row = classify(line)
        if row is None:
            continue
        counts[row.kind] += 1
        if row.name == "initialized":
            driver = initialized(line) or driver
        _numbers(row.name, line, numbers)
        book = faults if row.kind == "fault" else benign if row.kind == "benign" else None
        if book is not None:
            entry = book.setdefault(row.name, {"class": row.name, "count": 0, "lines": []})
            entry["count"] += 1
            if len(entry["lines"]) < KEPT_PER_CLASS:
                entry["lines"].append(line)
    return {
        "counts": counts,
        "faults": list(faults.values()),
        "benign": list(benign.values()),
        "driver": driver,
        "numbers": numbers,
    }


def worth_keeping(line: str) -> bool:
    """Whether a line of the log says anything to this module. All others may hold anything about anyone."""
    text = STAMP.sub("", line[:MAX_LINE]).strip()
    numbers: dict[str, Any] = {}
    _common_numbers(text, numbers)
    return bool(numbers) or classify(text) is not None


def initialized(line: str) -> dict[str, Any] | None:
    """``Initialized rknpu 0.9.6 20240322 for fdab0000.npu on minor 1``; newer kernels leave the date out."""
    match = re.search(
        r"Initialized (rknpu|rocket) ([0-9.]+)(?: ([0-9]{8}))?(?: for (\S+))?(?: on minor ([0-9]+))?",
        line,
        re.IGNORECASE,
    )
    if match:
        return {
            "name": match.group(1).lower(),
            "version": dotted(version(match.group(2))),
            "date": match.group(3),
            "device": match.group(4),
        }
    match = re.search(r"Initialized RKNPU driver: v?([0-9.]+)(?: for ([0-9]{8}))?", line, re.IGNORECASE)
    if match:
        return {"name": "rknpu", "version": dotted(version(match.group(1))), "date": match.group(2), "device": None}
    return None


_HEX_OR_DECIMAL = {
    "thermal-policy": (
        ("npu_hot_mc", re.compile(r"\bh=([0-9]{1,7})\b")),
        ("npu_hot_limit_hz", re.compile(r"\bh_limit=([0-9]{1,11})\b")),
    ),
    "first-clock": (("npu_first_clock_hz", re.compile(r"initial freq: ([0-9]{1,11}) Hz")),),
    "on-chip-memory": (
        ("sram_bytes", re.compile(r"sram size: (0x[0-9a-fA-F]{1,8})")),
        ("nbuf_bytes", re.compile(r"nbuf size: (0x[0-9a-fA-F]{1,8})")),
    ),
}
_TEXTS = {
    "job-status": ("raw_status", re.compile(r"raw status: (0x[0-9a-fA-F]{1,8})")),
    "dmc-atf": ("dmc_atf", re.compile(r"ATF version (0x[0-9a-fA-F]{1,8})", re.IGNORECASE)),
    "regulator-cleanup": ("regulator_cleanup", re.compile(r"(.*)")),
}


def _numbers(name: str, line: str, numbers: dict[str, Any]) -> None:
    """Numbers of one classified line, into ``numbers``."""
    if name == "speed-bin":
        for key, value in re.findall(r"\b(bin|leakage|pvtm-volt-sel|pvtm|avs)\s?=\s?(-?[0-9]{1,7})", line):
            numbers.setdefault("npu_" + key.replace("-", "_"), int(value))
    elif name in ("iommu-on", "iommu-off"):
        numbers["iommu_mode"] = "iommu" if name == "iommu-on" else "non-iommu"
        numbers["iommu_line"] = line
    elif name == "domain-switch":
        numbers["domain_switches"] = numbers.get("domain_switches", 0) + 1
    for key, pattern in _HEX_OR_DECIMAL.get(name, ()):
        match = pattern.search(line)
        if match:
            numbers[key] = int(match.group(1), 0) if match.group(1).startswith("0x") else int(match.group(1))
    if name in _TEXTS:
        key, pattern = _TEXTS[name]
        match = pattern.search(line)
        if match:
            numbers[key] = match.group(1).lower() if match.group(1).startswith("0X") else match.group(1)


def _common_numbers(line: str, numbers: dict[str, Any]) -> None:
    """Lines that are not about the NPU and still say something: SoC id, processor speed bins, swiotlb size."""
    if "SoC" in line:
        match = re.search(r"cpuinfo: SoC\s*:\s*([0-9a-fA-F]{8})\b", line)
        if match:
            numbers.setdefault("soc_id", match.group(1).lower())
    elif "software IO TLB" in line:
        match = re.search(r"\(([0-9]{1,6})MB\)", line)
        if match:
            numbers.setdefault("swiotlb_bytes", (integer(match.group(1)) or 0) * 1024 * 1024)
    elif "pvtm" in line or "leakage" in line:
        match = re.match(r"cpu cpu([0-9]{1,3}): (leakage|pvtm|pvtm-volt-sel)\s?=\s?(-?[0-9]{1,7})\b", line)
        if match:
            bins = numbers.setdefault("cpu_bins", {})
            bins.setdefault(f"cpu{match.group(1)}", {})[match.group(2).replace("-", "_")] = int(match.group(3))
    elif "Default domain type" in line:
        match = re.search(r"Default domain type: (\w+)", line)
        if match:
            numbers.setdefault("default_domain", match.group(1))
