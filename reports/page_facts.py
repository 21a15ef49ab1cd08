# SPDX-License-Identifier: Apache-2.0
"""Which facts the terminal page shows, under which words, and how each kind of value is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Row = tuple[str, str, str]
"""Label on the page, fact key, kind of value."""

PAGE_SECTIONS: tuple[tuple[str, tuple[Row, ...]], ...] = (
    (
        "Board",
        (
            ("model", "board.model", "plain"),
            ("SoC", "soc.name", "plain"),
            ("system", "os.name", "plain"),
            ("kernel", "kernel.release", "plain"),
            ("container", "container.kind", "plain"),
            ("CPU", "cpu.clusters", "clusters"),
            ("memory", "memory.total_bytes", "bytes"),
            ("DDR", "ddr.type", "plain"),
            ("DDR clock", "ddr.clock_now_hz", "hertz"),
            ("DDR highest", "ddr.clock_max_hz", "hertz"),
            ("DDR governor", "ddr.governor", "plain"),
            ("DDR by theory", "ddr.theoretical_gbps", "gbps"),
            ("hottest zone", "thermal.max_c", "celsius"),
            ("open files", "limits.nofile_soft", "plain"),
            ("rights", "privilege.note", "plain"),
        ),
    ),
    (
        "NPU",
        (
            ("stack", "npu.stack", "plain"),
            ("device node", "npu.device_node", "plain"),
            ("may be opened", "npu.device_accessible", "plain"),
            ("driver", "npu.driver_version", "plain"),
            ("cores", "npu.cores", "plain"),
            ("clock", "npu.clock_now_hz", "hertz"),
            ("highest clock", "npu.clock_max_hz", "hertz"),
            ("governor", "npu.governor", "plain"),
            ("load", "npu.load_percent", "plain"),
            ("IOMMU", "iommu.mode", "plain"),
            ("IOMMU windows", "iommu.windows", "plain"),
            ("in use by", "tenants", "tenants"),
            ("librknnrt", "libraries", "libraries"),
        ),
    ),
)


def fact_text(fact: dict[str, Any], kind: str) -> list[str]:
    """The lines for one fact of a report: its value by ``kind``, or why it is unknown."""
    value = fact.get("value")
    if value is None:
        hint = " (root could read it)" if fact.get("needs_root") else ""
        return [f"unknown: {fact.get('reason')}{hint}"]
    mark = " (assumed)" if fact.get("provenance") == "assumed" else ""
    try:
        lines = _WRITERS[kind](value)
    except (TypeError, ValueError, LookupError, AttributeError):
        lines = [str(value)]  # a report from elsewhere may hold any shape; it is shown as it is
    return [f"{lines[0]}{mark}", *lines[1:]] if lines else ["none"]


def _plain(value: Any) -> list[str]:
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    if isinstance(value, list):
        return [", ".join(str(item) for item in value)] if value else []
    return [str(value)]


def _hertz(value: Any) -> list[str]:
    return [f"{value / 1e6:.0f} MHz"]


def _bytes(value: Any) -> list[str]:
    return [f"{value / 2**30:.1f} GiB" if value >= 2**30 else f"{value / 2**20:.1f} MiB"]


def _gbps(value: Any) -> list[str]:
    return [f"{value:.1f} GB/s"]


def _celsius(value: Any) -> list[str]:
    return [f"{value:.1f} C"]


def _clusters(value: Any) -> list[str]:
    return [_cluster(cluster) for cluster in value]


def _cluster(cluster: dict[str, Any]) -> str:
    cpus = cluster["cpus"]
    span = f"{cpus[0]}-{cpus[-1]}" if len(cpus) > 1 else str(cpus[0])
    words = [f"{len(cpus)} x {cluster['core']} (cpu {span})" if cluster.get("core") else f"cpu {span}"]
    if cluster.get("hardware_max_hz"):
        words.append(f"up to {cluster['hardware_max_hz'] / 1e6:.0f} MHz")
    if cluster.get("governor"):
        words.append(f"governor {cluster['governor']}")
    return ", ".join(words)


def _tenants(value: Any) -> list[str]:
    return [f"{holder.get('name')} (pid {holder.get('pid')})" for holder in value] or ["nobody seen"]


def _libraries(value: Any) -> list[str]:
    return [_library(library) for library in value]


def _library(library: dict[str, Any]) -> str:
    marks = []
    if library.get("taken"):
        marks.append("the loader takes this one")
    if library.get("shadowed_by"):
        marks.append(f"shadowed by {library['shadowed_by']}")
    if library.get("problem"):
        marks.append(str(library["problem"]))
    version = library.get("version_text") or "no version text"
    return f"{library['path']}: {version}" + (f" [{'; '.join(marks)}]" if marks else "")


_WRITERS: dict[str, Callable[[Any], list[str]]] = {
    "plain": _plain,
    "hertz": _hertz,
    "bytes": _bytes,
    "gbps": _gbps,
    "celsius": _celsius,
    "clusters": _clusters,
    "tenants": _tenants,
    "libraries": _libraries,
}
