# SPDX-License-Identifier: Apache-2.0
"""Identity, permissions, containers, limits, and other users of the NPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from probes.facts.sheet import FactSheet
from probes.facts.soc_table import SOCS
from probes.findings.common import RKNPU_STACKS, container, evidence
from reports.catalogue import make_finding
from reports.contract import Finding

MIN_NOFILE = 4096
"""Below this a large model can run out of file handles (about one per buffer; seen at 1024)."""
ENOUGH_NOFILE = 65535


def identity(sheet: FactSheet) -> Iterator[Finding]:
    rockchip = sheet.flag("soc.is_rockchip")
    if rockchip is False:
        yield make_finding("NPU-E001", evidence(sheet, "soc.is_rockchip", "kernel.machine", "board.compatible"))
        return
    kind = container(sheet)
    if rockchip is None and kind:
        yield make_finding("NPU-E021", evidence(sheet, "board.compatible", "npu.stack"), kind=kind)
        return
    name = sheet.text("soc.name")
    if (name or "").split(" or ")[0] not in SOCS:
        yield make_finding("NPU-E002", evidence(sheet, "soc.name", "board.compatible"), name=name or "no name found")


def overstated(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.flag("soc.overstated"):
        yield make_finding(
            "NPU-E030",
            evidence(sheet, "soc.device_tree", "soc.name", "cpu.present", "npu.cores"),
            claimed=sheet.text("soc.device_tree"),
            real=sheet.text("soc.name"),
            cpus=sheet.value("cpu.present") or "fewer",
            cores=sheet.value("npu.cores") or 2,
        )


def permission(sheet: FactSheet) -> Iterator[Finding]:
    """Wins over everything that says 'no module': with a node there is a driver."""
    if sheet.flag("npu.device_accessible") is not False or sheet.flag("npu.symlink_trap"):
        return
    row = _chosen(sheet)
    yield make_finding(
        "NPU-E010",
        f"{row['path']}: mode {row['mode']}, owner {row['owner']}, group {row['group']}; uid "
        f"{sheet.value('process.uid')}",
        path=row["path"],
        mode=row["mode"],
        owner=row["owner"],
        group=row["group"],
        command=_permission_command(row, container(sheet)),
        then="Start the container anew with that."
        if container(sheet)
        else "Log out and in again, so that a new group counts; check with: id",
    )


def _chosen(sheet: FactSheet) -> dict[str, Any]:
    path = sheet.text("npu.device_node")
    return next(row for row in sheet.rows("npu.device_nodes") if row["path"] == path)


def _permission_command(row: dict[str, Any], kind: str | None) -> str:
    path, group = str(row["path"]), str(row["group"])
    if kind == "kubernetes":
        return f"Pod: securityContext.supplementalGroups: [GID], GID being, on the host: stat -c %g {path}"
    if kind:
        return handed(kind, path, f"--group-add $(stat -c %g {path})")
    group_may = int(str(row["mode"]), 8) & 0o060 == 0o060
    if group_may and group not in ("root", "") and not group.startswith("gid "):
        return f"sudo usermod -aG {group} $USER"
    subsystem = "accel" if "/accel/" in path else "misc" if path == "/dev/rknpu" else "drm"
    match = 'KERNEL=="rknpu"' if subsystem == "misc" else f'KERNEL=="{"accel" if subsystem == "accel" else "renderD"}*"'
    rule = f'SUBSYSTEM=="{subsystem}", {match}, GROUP="render", MODE="0660"'
    return (
        f"echo '{rule}' | sudo tee /etc/udev/rules.d/99-rknpu.rules && sudo udevadm control --reload && "
        "sudo udevadm trigger && sudo usermod -aG render $USER"
    )


def handed(kind: str, device: str, more: str = "") -> str:
    """How a container of this kind is given a device of the host; ``more`` are options of docker and podman."""
    if kind == "kubernetes":
        return f"Pod: a device plugin for the NPU, or privileged: true and a hostPath volume of {device}"
    if kind == "lxc":
        return f"lxc config device add CONTAINER npu unix-char path={device}"
    engine = "podman" if kind == "podman" else "docker"
    return f"{engine} run --device {device} {more}".rstrip() + " ..."


def _unmasked(kind: str) -> str:
    """The option that shows /proc/device-tree in the container: each engine has its own word for it."""
    return "--security-opt unmask=ALL" if kind == "podman" else "--security-opt systempaths=unconfined"


def node_missing(sheet: FactSheet) -> Iterator[Finding]:
    stack = sheet.text("npu.stack")
    running = stack in RKNPU_STACKS or stack == "rocket"
    kind = container(sheet)
    if sheet.text("npu.device_node") or not (running or (kind and stack is None and sheet.flag("soc.is_rockchip"))):
        return
    named = [str(row["path"]) for row in sheet.rows("npu.device_nodes")]
    path = (
        named[0]
        if named
        else {"rocket": "/dev/accel/accel*", "vendor-misc": "/dev/rknpu"}.get(stack or "", "/dev/dri/renderD*")
    )
    shown = evidence(sheet, "npu.stack", "npu.device_node")
    if kind:
        device = path.replace("/renderD*", "").replace("/accel*", "")
        command = handed(kind, device, _unmasked(kind))
        yield make_finding("NPU-E011", shown, kind=kind, path=path, command=command)
    else:
        yield make_finding("NPU-E014", shown, path=path)


def symlink_trap(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.flag("npu.symlink_trap"):
        target = sheet.text("npu.symlink_target") or "a DRM node"
        yield make_finding("NPU-E013", evidence(sheet, "npu.symlink_target"), target=target)


def masked_tree(sheet: FactSheet) -> Iterator[Finding]:
    kind = container(sheet)
    if not kind or sheet.value("board.compatible") is not None or sheet.flag("soc.is_rockchip") is not True:
        return
    device = sheet.text("npu.device_node") or "/dev/dri"
    command = handed(kind, device, _unmasked(kind))
    if kind == "kubernetes":
        command = "Pod: securityContext.procMount: Unmasked, or a read-only hostPath volume of /proc/device-tree"
    yield make_finding("NPU-E020", evidence(sheet, "board.compatible"), kind=kind, command=command)


def open_files(sheet: FactSheet) -> Iterator[Finding]:
    soft = sheet.number("limits.nofile_soft")
    if soft is not None and soft < MIN_NOFILE and sheet.flag("soc.is_rockchip"):
        hard = sheet.number("limits.nofile_hard")
        limit = ENOUGH_NOFILE if hard is None else min(ENOUGH_NOFILE, hard)
        shown = evidence(sheet, "limits.nofile_soft", "limits.nofile_hard")
        yield make_finding("NPU-E012", shown, soft=soft, limit=int(limit))


def other_users(sheet: FactSheet) -> Iterator[Finding]:
    holders = sheet.rows("tenants")
    if holders:
        names = ", ".join(f"{row['name']} (pid {row['pid']})" for row in holders[:6])
        yield make_finding("NPU-S001", evidence(sheet, "tenants"), holders=names)
    elif sheet.flag("npu.busy") and sheet.flag("tenants.scan_complete") is not True:
        delta = sheet.number("npu.irq_delta")
        sign = f"{delta} interrupts in a quarter second" if delta else f"load {sheet.items_of('npu.load_percent')} %"
        device = sheet.text("npu.device_node") or "/dev/dri/renderD*"
        yield make_finding("NPU-S004", evidence(sheet, "npu.irq_delta", "npu.load_percent"), sign=sign, device=device)


RULES = (identity, overstated, permission, node_missing, symlink_trap, masked_tree, open_files, other_users)
