# SPDX-License-Identifier: Apache-2.0
"""Driver version by every route, and every librknnrt and librkllmrt on the board."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from probes.facts.parse import Version, dotted, driver_version, version
from probes.facts.sheet import Pen

MIN_DOMAINS = (0, 9, 6)
"""First driver with more than one IOMMU domain."""


def driver(pen: Pen) -> None:
    """``npu.driver_version`` and the routes to it. Each route says what it found or why not."""
    system = pen.system
    routes: dict[str, Any] = {}
    reasons: list[str] = []
    needs_root = False
    for path in ("/sys/module/rknpu/version", "/sys/kernel/debug/rknpu/version", "/proc/rknpu/version"):
        answer = system.text(path, limit=4096)
        found = driver_version(answer.value)
        routes[path] = found or answer.reason
        if found is None:
            reasons.append(answer.reason)
            needs_root = needs_root or answer.needs_root
    line = pen.sheet.table("klog.driver")
    if line.get("name") == "rknpu" and line.get("version"):
        routes["kernel log"] = line["version"]
    else:
        reasons.append("kernel log: no line of rknpu")
        routes["kernel log"] = pen.sheet.reason("klog.driver") or "no line of rknpu"
    _ask_drm(pen, routes)
    routes["GET_DRV_VERSION ioctl"] = "not asked: every ioctl of the driver itself wakes the NPU"
    numbers = {path: text for path, text in routes.items() if driver_version(str(text)) == text}
    best = next(iter(numbers.items()), None)
    stack = pen.sheet.text("npu.stack")
    if stack in ("rocket", "none") and not numbers:
        reasons = [f"stack {stack}: no vendor driver is running"]
    pen.put(
        "npu.driver_version",
        best[1] if best else None,
        best[0] if best else "/sys/module/rknpu/version",
        reason="; ".join(reasons)[:600],
        needs_root=needs_root,
    )
    pen.put("npu.driver_version_routes", routes, "all routes")
    pen.put("npu.driver_routes_agree", len(set(numbers.values())) <= 1, "all routes")
    number = version(best[1]) if best else None
    pen.assume("npu.ioctl_generation", ioctl_generation(number), "driver version", "driver version unknown")
    pen.put("npu.driver_date", line.get("date"), "kernel log", reason="newer kernels do not print it, or no log")
    pen.put("npu.driver_linkage", _linkage(pen), "/proc/modules, /sys/module", reason="no NPU driver seen")


def ioctl_generation(number: Version | None) -> str | None:
    """Which form of the driver's memory ioctl programs must use; programs that speak to the driver directly care."""
    if number is None:
        return None
    if number >= MIN_DOMAINS:
        return "domains (48-byte MEM_CREATE)"
    return "SRAM (40-byte MEM_CREATE)" if number >= (0, 8, 0) else "first (32-byte MEM_CREATE)"


def _ask_drm(pen: Pen, routes: dict[str, Any]) -> None:
    """The DRM core's answer, where the node may be opened. It wakes nothing."""
    node = pen.sheet.text("npu.device_node") or ""
    if pen.sheet.flag("npu.device_accessible") and node.startswith("/dev/dri/"):
        answer = pen.system.drm_version(node)
        if answer is not None and answer.name == "rknpu":
            routes[f"DRM_IOCTL_VERSION {node}"] = dotted(answer.version)
            return
    routes["DRM_IOCTL_VERSION"] = "no DRM node of the NPU that this user may open"


def _linkage(pen: Pen) -> str | None:
    modules = [str(name) for name in pen.sheet.items_of("kernel.npu_modules")]
    if any(name.startswith(("rknpu", "rocket")) for name in modules):
        return "module"
    if pen.system.exists("/sys/module/rknpu") or pen.system.exists("/sys/module/rocket"):
        return "builtin"
    if pen.sheet.text("npu.stack") not in (None, "none") and pen.sheet.value("kernel.npu_modules") is not None:
        return "builtin"
    return None


def libraries(pen: Pen) -> None:
    """``libraries``, ``runtime.*`` and ``rkllm.*``. The loader's order decides; the others are shadowed."""
    rows, reason = _search(pen)
    pen.put("libraries", rows, "loader path and usual places", reason=reason)
    for key, stem in (("runtime", "librknnrt"), ("rkllm", "librkllmrt")):
        copies = [row for row in rows or [] if str(row.get("path", "")).rpartition("/")[2].startswith(stem)]
        taken = next((row for row in copies if row.get("taken")), None)
        why = reason or (
            f"the loader takes none of {len(copies)} copies of {stem}.so" if copies else f"no {stem}.so found"
        )
        pen.put(f"{key}.path", taken["path"] if taken else None, "loader order", reason=why)
        found = taken.get("version") if taken else None
        pen.put(
            f"{key}.version",
            found,
            taken["path"] if taken else "loader order",
            reason=why if not taken else "no version text in the file",
        )
        others = [{"path": row["path"], "version": row.get("version")} for row in copies if row is not taken]
        pen.put(f"{key}.shadowed", others, "loader order")


def _search(pen: Pen) -> tuple[list[dict[str, Any]] | None, str]:
    recorded = pen.system.live.libraries
    if recorded is not None:
        return [dict(row) for row in recorded], ""
    try:
        from c_probes.library_search import find_libraries  # noqa: PLC0415  (standard library only, but optional)
    except ImportError as error:
        return None, f"the library search is not part of this copy of the kit: {error}"
    try:
        found = find_libraries(pen.system.root, dict(pen.system.live.environ), machine=pen.system.live.machine)
    except (OSError, ValueError) as error:
        return None, f"library search: {error}"
    return [library_row(asdict(item)) for item in found], ""


def library_row(item: dict[str, Any]) -> dict[str, Any]:
    """One library as a fact row. The exported symbols are counted, not listed."""
    text = item.get("version_text") or None
    number = item.get("version")
    shown = dotted(tuple(number)) if isinstance(number, (list, tuple)) and number else dotted(version(str(text or "")))
    return {
        "path": str(item.get("path")),
        "real_path": str(item.get("real_path")),
        "size_bytes": item.get("size"),
        "sha256": item.get("sha256"),
        "version": shown,
        "version_text": text,
        "elf_machine": item.get("elf_machine"),
        "is_mock": bool(item.get("is_mock")),
        "on_loader_path": bool(item.get("on_loader_path")),
        "taken": bool(item.get("taken")),
        "shadowed_by": item.get("shadowed_by"),
        "problem": item.get("problem"),
        "symbols": len(item.get("symbols") or ()),
    }
