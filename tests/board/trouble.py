# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of a table is a line of a file on the board)
"""Troubles as boards: a healthy board with something changed, and the finding that must come first.

``clean`` means that no error and no warning may be found. Each row names the public reports it stands for.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.board import samples
from tests.board.tree import interrupts, npu_device

CLEAN = "clean"
HEALTHY = samples.ROCK5B_61
RK356X = samples.ORANGEPI3B


class Scenario(NamedTuple):
    """``also``: codes that must be found as well; ``never``: codes that must not be found at all."""

    name: str
    source: str
    tables: tuple[str, ...]
    first: str
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


def healthy(*changes: str) -> tuple[str, ...]:
    return (HEALTHY, *changes)


def with_driver(version: str) -> str:
    return (
        f"/sys/module/rknpu/version = {version}\n- dmesg\n"
        f"dmesg RKNPU fdab0000.npu: RKNPU: rknpu iommu is enabled, using iommu mode\n"
        f"dmesg [drm] Initialized rknpu {version} 20240101 for fdab0000.npu on minor 1"
    )


def unbound(name: str, compatible: str, extra: str = "") -> str:
    """The NPU device without a driver, and no node of it."""
    return "\n".join(
        [
            f"- /sys/devices/platform/{name}",
            "- /sys/class/drm/card1",
            "- /sys/class/drm/renderD129",
            "- /dev/dri/card1",
            "- /dev/dri/renderD129",
            "- /sys/module/rknpu",
            "- dmesg",
            npu_device(name, None, compatible, None),
            extra,
        ]
    )


NO_DRM_IN_CONTAINER = "- /dev/dri\n- /run/udev\n- /sys/kernel/debug\n/.dockerenv dir"
MASKED_TREE = "- /proc/device-tree\n/proc/device-tree dir\n/.dockerenv dir\n- /run/udev"
LIBRARY = "/usr/lib/librknnrt.so lib librknnrt version: {} (0123456789@2024-01-01)"
CORES = ("fdab0000", "fdac0000", "fdad0000")
DTBO = "/proc/device-tree/npu@fdab0000/status = disabled\\0"
FAULTS = """
dmesg RKNPU: failed to wait job, task counter: 0, flags: 0x5, ret = -110, elapsed time: 6000000us
dmesg RKNPU: job timeout, flags: 0x0:
dmesg RKNPU: \tcore 0 irq status: 0x0, raw status: 0x10000, require mask: 0x300, task counter: 0x0, elapsed time: 6001000us
dmesg RKNPU: soft reset, num: 6
"""
STUCK = interrupts(8, [(40, [500000, 0, 0, 0, 9000, 0, 0, 0], "fdab9000.iommu, fdab0000.npu")])
MAINLINE_356X = "\n".join(
    [samples.ORANGEPI3B_DKMS, "/sys/devices/platform/fde40000.npu/iommu_group -> ../../../kernel/iommu_groups/3"]
)
IOMMU_ON = "- dmesg\ndmesg RKNPU fde40000.npu: RKNPU: rknpu iommu is enabled, using iommu mode"
