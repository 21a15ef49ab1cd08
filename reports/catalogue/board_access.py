# SPDX-License-Identifier: Apache-2.0
"""Access to the NPU, containers, identity, and who else uses it."""

from __future__ import annotations

from reports.catalogue.entry import Entry
from reports.contract import Severity

ENTRIES: tuple[Entry, ...] = (
    Entry(
        code="NPU-E001",
        severity=Severity.INFO,
        what="This machine is no Rockchip board.",
        why="Facts about an NPU cannot be read here; what is measured here is measured on the kit's mock.",
        fix=(
            "Run the kit on the board itself, or look at a capture of one: python -m probes --root DIRECTORY",
            "A capture is unpacked first: python -m probes capture --unpack DIRECTORY board.tar",
        ),
        rank=900,
    ),
    Entry(
        code="NPU-E002",
        severity=Severity.INFO,
        what="The SoC is not known to this kit: {name}.",
        why="Core count, memory width and rated speed come from a table; for an unknown SoC they stay unknown.",
        fix=("Save the board and send it to the developers: python -m probes capture board.tar",),
        rank=901,
    ),
    Entry(
        code="NPU-E010",
        severity=Severity.ERROR,
        what="No permission to open the NPU at {path}: mode {mode}, owner {owner}, group {group}.",
        why="librknnrt then says that the rknpu module must be inserted, which is not the cause: the driver is "
        "running.",
        fix=("{command}", "{then}"),
        rank=10,
    ),
    Entry(
        code="NPU-E011",
        severity=Severity.ERROR,
        what="This {kind} container was not given the device node of the NPU ({path}).",
        why="A container sees only the devices that it is handed; the host's driver is not at fault.",
        fix=(
            "{command}",
            "On the host, find the node by driver: ls -l /dev/dri/by-path/ | grep npu",
        ),
        rank=11,
    ),
    Entry(
        code="NPU-E012",
        severity=Severity.WARNING,
        what="The limit of open files is {soft}.",
        why="Runtimes that hold a file per buffer fail with errno 24 at about the 1020th buffer of a large model.",
        fix=(
            "ulimit -n {limit}    # in the shell that starts the program",
            "For a systemd service: LimitNOFILE=65535 in its [Service] section",
        ),
        rank=210,
    ),
    Entry(
        code="NPU-E013",
        severity=Severity.ERROR,
        what="/dev/rknpu is a symbolic link to {target}.",
        why="librknnrt takes the link for the misc device of another driver build and uses the wrong ioctls: "
        "every call "
        "fails with ENOTTY and the hardware version reads -1. With the link gone it finds the DRM node by itself.",
        fix=(
            "sudo rm /dev/rknpu",
            "Remove the udev rule that makes it: grep -rl rknpu /etc/udev/rules.d /lib/udev/rules.d",
        ),
        rank=9,
    ),
    Entry(
        code="NPU-E014",
        severity=Severity.ERROR,
        what="The NPU driver is running, but its device node is missing: {path}.",
        why="Without the node no program can reach the NPU.",
        fix=(
            (
                "sudo udevadm trigger --subsystem-match=drm --subsystem-match=accel --subsystem-match=misc && ls -l "
                "/dev/dri /dev/accel"
            ),
        ),
        rank=12,
    ),
    Entry(
        code="NPU-E020",
        severity=Severity.ERROR,
        what="This {kind} container hides /proc/device-tree.",
        why="librknnrt reads it to tell which SoC it runs on, and fails with 'can't read "
        "/proc/device-tree/compatible' or "
        "a hardware version of -1.",
        fix=("{command}",),
        rank=13,
    ),
    Entry(
        code="NPU-E021",
        severity=Severity.INFO,
        what="Inside this {kind} container nothing tells which board this is.",
        why="Neither the device tree nor an NPU device is visible; on the host the same probe may tell.",
        fix=("Run the probe on the host and compare the two reports.",),
        rank=902,
    ),
    Entry(
        code="NPU-E030",
        severity=Severity.WARNING,
        what="The device tree says {claimed}, the silicon is {real}.",
        why="Boards with a partly fused chip are sold with the device tree of the full one: {cpus} processors and "
        "{cores} NPU cores are what there is.",
        fix=("Use {cores} NPU cores at most, and compare with figures for {real}.",),
        rank=190,
    ),
    Entry(
        code="NPU-S001",
        severity=Severity.WARNING,
        what="The NPU is held by {holders}.",
        why="A second client can hang or panic vendor drivers, and shares the speed at best: active tests are "
        "refused "
        "while it is held.",
        fix=(
            (
                "Stop that program in its own way (systemctl stop, Ctrl-C); kill -9 in the middle of a job can "
                "wedge the NPU."
            ),
        ),
        rank=15,
    ),
    Entry(
        code="NPU-S004",
        severity=Severity.WARNING,
        what="The NPU is working ({sign}), but its user is not visible.",
        why="Processes of other users are closed to this one; a measurement now would share the NPU.",
        fix=("sudo fuser -v {device}",),
        rank=16,
    ),
)
