# SPDX-License-Identifier: Apache-2.0
"""Device nodes of the NPU: found by driver, never by number; who may open them; the /dev/rknpu symlink trap."""

from __future__ import annotations

import re
from typing import Any

from probes.facts.parse import group_names, pairs, process_ids
from probes.facts.sheet import Pen
from probes.facts.stack import render_nodes, rocket_nodes


def collect(pen: Pen) -> None:
    """``npu.device_*``, ``npu.symlink_trap``, ``process.*``."""
    status = pen.system.text("/proc/self/status")
    uid, gids = process_ids(status.value)
    uid = pen.system.live.uid if pen.system.live.uid is not None else uid
    gids = list(pen.system.live.gids) or gids
    pen.put("process.uid", uid, status.path, reason=status.reason)
    pen.put("process.gids", gids, status.path)
    groups = group_names(pen.system.text("/etc/group").value)
    rows = [_row(pen, path, driver, groups) for path, driver in _nodes(pen)]
    pen.put("npu.device_nodes", rows, "/sys/class/{drm,accel,misc}")
    chosen = next((row for row in rows if row["present"]), None)
    why = _why_none(pen, rows)
    pen.put("npu.device_node", chosen["path"] if chosen else None, "device nodes by driver", reason=why)
    pen.put(
        "npu.device_accessible",
        chosen["accessible"] if chosen else None,
        "mode, owner and group of the node",
        reason="the picture does not say who looked" if chosen else why,
    )
    pen.put("npu.access_mode", _access_mode(pen), "stack", reason=why)
    _trap(pen)


def _nodes(pen: Pen) -> list[tuple[str, str]]:
    """(path, driver) of every node that belongs to the NPU, render nodes first."""
    system = pen.system
    stack = pen.sheet.text("npu.stack")
    found: list[tuple[str, str]] = []
    unknown: list[str] = []
    for name in system.names("/sys/class/drm").value or []:
        if not re.fullmatch(r"(?:renderD|card)[0-9]{1,4}", name):
            continue
        base = f"/sys/class/drm/{name}"
        node = pairs(system.text(f"{base}/uevent").value).get("DEVNAME", f"dri/{name}")
        path = f"/dev/{node}" if re.fullmatch(r"dri/[\w-]{1,32}", node) else f"/dev/dri/{name}"
        uevent = system.text(f"{base}/device/uevent")
        driver = pairs(uevent.value).get("DRIVER")
        device = (system.link(f"{base}/device").value or "").rstrip("/").rpartition("/")[2]
        if driver == "RKNPU" or device.endswith(".npu") or (driver is None and device == "rknpu"):
            found.append((path, "rknpu"))
        elif driver is None and name.startswith("renderD"):
            unknown.append(path)
    if not found:
        candidates = unknown or (render_nodes(pen) if not system.names("/sys/class/drm").value else [])
        for path in candidates:
            answer = system.drm_version(path)
            if answer is not None and answer.name == "rknpu":
                found.append((path, "rknpu"))
    if not found:
        found = _by_path(pen)
    if stack == "vendor-misc":
        found.append(("/dev/rknpu", "rknpu"))
    found += [(f"/dev/accel/{name}", "rocket") for name in rocket_nodes(pen)]
    return sorted(set(found), key=lambda row: ("render" not in row[0], row[0]))


def _by_path(pen: Pen) -> list[tuple[str, str]]:
    rows = []
    for name in pen.system.names("/dev/dri/by-path").value or []:
        if re.fullmatch(r"platform-[0-9a-f]+\.npu-(?:render|card)", name):
            real = pen.system.link(f"/dev/dri/by-path/{name}").value or ""
            target = real.rpartition("/")[2]
            if re.fullmatch(r"(?:renderD|card)[0-9]{1,4}", target):
                rows.append((f"/dev/dri/{target}", "rknpu"))
    return rows


def _row(pen: Pen, path: str, driver: str, groups: dict[int, str]) -> dict[str, Any]:
    answer = pen.system.node(path)
    node = answer.value
    if node is None or node.kind != "char":
        kind = "absent" if node is None else f"a {node.kind}, no device"
        return {"path": path, "driver": driver, "present": False, "kind": kind, "accessible": None}
    return {
        "path": path,
        "driver": driver,
        "present": True,
        "kind": "char",
        "mode": f"{node.mode:04o}",
        "owner": "root" if node.uid == 0 else f"uid {node.uid}",
        "group": groups.get(node.gid, "root" if node.gid == 0 else f"gid {node.gid}"),
        "rdev": list(node.rdev) if node.rdev else None,
        "accessible": node.accessible,
    }


def _why_none(pen: Pen, rows: list[dict[str, Any]]) -> str:
    if rows:
        return "; ".join(f"{row['path']}: {row['kind']}" for row in rows)
    stack = pen.sheet.text("npu.stack")
    if stack in (None, "none"):
        return "no NPU driver is bound, so there is no node"
    return "the driver is bound, but no node of it is listed under /sys/class or /dev"


def _access_mode(pen: Pen) -> str | None:
    modes = {
        "vendor-misc": "misc device /dev/rknpu",
        "rocket": "accel node",
        "vendor-drm": "DRM render node",
        "out-of-tree-merged": "DRM render node",
        "out-of-tree-split": "DRM render node",
    }
    return modes.get(pen.sheet.text("npu.stack") or "")


def _trap(pen: Pen) -> None:
    """A link from /dev/rknpu to a render node makes librknnrt use the misc device's ioctls: every call fails ENOTTY."""
    link = pen.system.link("/dev/rknpu")
    trapped = bool(link.value) and bool(re.search(r"(?:renderD|card)[0-9]+$", link.value or ""))
    pen.put("npu.symlink_trap", trapped, "/dev/rknpu")
    if link.value:
        pen.put("npu.symlink_target", link.value, "/dev/rknpu")
