# SPDX-License-Identifier: Apache-2.0
"""Which NPU driver stack: six layouts, told apart by driver name and device tree, never by node number.

``vendor-drm``, ``vendor-misc`` (dma-heap build), ``out-of-tree-merged``, ``out-of-tree-split``, ``rocket``, ``none``.
Nothing read here wakes the NPU.
"""

from __future__ import annotations

import re
from typing import Any

from probes.facts.parse import pairs
from probes.facts.sheet import Pen

PLATFORM = "/sys/bus/platform/devices"
_DRIVERS = {"RKNPU": "RKNPU", "rknpu": "RKNPU", "rocket": "rocket"}


def collect(pen: Pen) -> None:
    """``npu.platform_devices``, ``npu.dt_nodes`` and ``npu.stack``."""
    listing = pen.system.names(PLATFORM)
    names = [name for name in listing.value or [] if name.endswith(".npu")][:16]
    rows = [_device(pen, name) for name in names]
    pen.put("npu.platform_devices", None if listing.value is None else rows, PLATFORM, reason=listing.reason)
    nodes, answered = _tree_nodes(pen)
    pen.put(
        "npu.dt_nodes",
        nodes if answered else None,
        "/proc/device-tree/npu@*",
        reason="/proc/device-tree: absent or empty",
    )
    stack, basis = _stack(pen, rows)
    if stack is None and listing.value is not None:
        stack, basis = "none", f"no NPU driver is bound ({len(rows)} NPU devices under {PLATFORM})"
    pen.put("npu.stack", stack, basis, reason=f"{listing.reason}, and no DRM or accel node of an NPU")
    pen.put("npu.stack_basis", basis, PLATFORM)
    drivers = sorted({row["driver"] for row in rows if row["driver"]})
    pen.put("npu.drivers_bound", drivers, PLATFORM)
    _deferred(pen)
    parameters = {}
    for name in (pen.system.names("/sys/module/rknpu/parameters").value or [])[:16]:
        parameters[name] = pen.system.text(f"/sys/module/rknpu/parameters/{name}", limit=256).value
    pen.put("npu.module_parameters", parameters, "/sys/module/rknpu/parameters")
    pen.put("npu.modprobe_blacklist", _blacklist(pen), "/etc/modprobe.d")


def _device(pen: Pen, name: str) -> dict[str, Any]:
    base = f"{PLATFORM}/{name}"
    system = pen.system
    uevent = pairs(system.text(f"{base}/uevent").value)
    link = system.link(f"{base}/driver").value
    driver = link.rstrip("/").rpartition("/")[2] if link else uevent.get("DRIVER")
    waiting = system.text(f"{base}/waiting_for_supplier").value
    group = system.link(f"{base}/iommu_group").value
    children = system.names(base).value or []
    suppliers = [child.removeprefix("supplier:") for child in children if child.startswith("supplier:")]
    return {
        "name": name,
        "driver": driver,
        "compatible": uevent.get("OF_COMPATIBLE_0"),
        "waiting_for_supplier": {"0": False, "1": True}.get((waiting or "").strip()),
        "iommu_group": group.rstrip("/").rpartition("/")[2] if group else None,
        "suppliers": suppliers[:16],
        "runtime_status": system.text(f"{base}/power/runtime_status").value,
    }


def _tree_nodes(pen: Pen) -> tuple[list[dict[str, Any]], bool]:
    rows: list[dict[str, Any]] = []
    answered = False
    for base in ("/proc/device-tree", "/proc/device-tree/soc"):
        listing = pen.system.names(base).value or []
        answered = answered or bool(listing)
        for name in listing:
            if not re.fullmatch(r"npu@[0-9a-f]{1,16}", name):
                continue
            children = pen.system.names(f"{base}/{name}").value or []
            status = pen.system.strings(f"{base}/{name}/status").value
            compatible = pen.system.strings(f"{base}/{name}/compatible").value
            rows.append(
                {
                    "path": f"{base}/{name}",
                    "compatible": compatible[0] if compatible else None,
                    "status": status[0] if status else "okay",
                    "has_iommus": "iommus" in children,
                    "has_supply": any(child.endswith("-supply") for child in children),
                }
            )
    return rows[:16], answered


def _stack(pen: Pen, rows: list[dict[str, Any]]) -> tuple[str | None, str]:
    bound = {_DRIVERS.get(str(row["driver"]), "") for row in rows} - {""}
    accel = rocket_nodes(pen)
    if "rocket" in bound and ("RKNPU" not in bound or accel):
        return "rocket", "driver rocket is bound to the NPU devices"
    if "RKNPU" in bound:
        return _rknpu(pen, rows)
    if accel and not bound:
        return "rocket", f"{accel[0]} belongs to rocket"
    if pen.system.exists("/sys/class/misc/rknpu"):
        return "vendor-misc", "/sys/class/misc/rknpu"
    for name in pen.system.names("/sys/class/drm").value or []:
        if (
            name.startswith("renderD")
            and pairs(pen.system.text(f"/sys/class/drm/{name}/device/uevent").value).get("DRIVER") == "RKNPU"
        ):
            return _rknpu(pen, rows)
    for path in render_nodes(pen):
        answer = pen.system.drm_version(path)
        if answer is not None and answer.name in ("rknpu", "rocket"):
            return _rknpu(pen, rows) if answer.name == "rknpu" else ("rocket", f"DRM name of {path}")
    return None, "no witness"


def _rknpu(pen: Pen, rows: list[dict[str, Any]]) -> tuple[str, str]:
    bound = [row for row in rows if _DRIVERS.get(str(row["driver"])) == "RKNPU"]
    if any("rknn-core" in str(row["compatible"]) for row in bound):
        return "out-of-tree-split", f"driver RKNPU on {len(bound)} nodes of the mainline device tree"
    if pen.system.exists("/sys/class/misc/rknpu"):
        return "vendor-misc", "driver RKNPU with the misc device /dev/rknpu"
    modules = [str(module) for module in pen.sheet.items_of("kernel.npu_modules")]
    foreign = any(module.startswith("rknpu") and "O" in module for module in modules)
    if foreign or pen.sheet.text("kernel.flavour") == "mainline":
        return "out-of-tree-merged", "driver RKNPU from outside the kernel tree on one NPU node"
    return "vendor-drm", "driver RKNPU of the vendor kernel on one NPU node"


def rocket_nodes(pen: Pen) -> list[str]:
    """accel class entries that belong to rocket: their device is the platform device ``rknn`` or an NPU core."""
    found = []
    for name in pen.system.names("/sys/class/accel").value or []:
        device = (pen.system.link(f"/sys/class/accel/{name}/device").value or "").rstrip("/").rpartition("/")[2]
        driver = pairs(pen.system.text(f"/sys/class/accel/{name}/device/uevent").value).get("DRIVER")
        if device == "rknn" or device.endswith(".npu") or driver == "rocket":
            found.append(name)
    return found


def render_nodes(pen: Pen) -> list[str]:
    """Render nodes under /dev/dri, by name."""
    names = pen.system.names("/dev/dri").value or []
    return [f"/dev/dri/{name}" for name in names if re.fullmatch(r"renderD[0-9]{1,4}", name)][:16]


def _deferred(pen: Pen) -> None:
    answer = pen.system.text("/sys/kernel/debug/devices_deferred")
    lines = [line.strip()[:200] for line in (answer.value or "").splitlines() if ".npu" in line][:8]
    pen.take("npu.deferred", answer, None if answer.value is None else lines)


def _blacklist(pen: Pen) -> list[str]:
    found = []
    for name in (pen.system.names("/etc/modprobe.d").value or [])[:64]:
        for line in (pen.system.text(f"/etc/modprobe.d/{name}").value or "").splitlines():
            if re.fullmatch(r"\s*(?:blacklist|install)\s+(?:rknpu|rocket)\b.*", line):
                found.append(f"/etc/modprobe.d/{name}: {' '.join(line.split())}")
    return found[:8]
