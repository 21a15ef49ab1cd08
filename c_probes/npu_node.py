# SPDX-License-Identifier: Apache-2.0
"""Whether this machine has a device node of the vendor's NPU driver: the condition for loading a real librknnrt.

The same rule as ``src/load_rule.c``, which serves the C probes: a node is known by its driver, else by the name of its
device (``fdab0000.npu``, or ``rknpu`` with a driver from outside the kernel tree), never by its number.
"""

from __future__ import annotations

from pathlib import Path


def npu_node_present(root: Path = Path("/")) -> bool:
    """True for ``/dev/rknpu``, or a DRM node whose device is the NPU and which exists in ``/dev/dri``."""
    if (root / "dev/rknpu").exists():
        return True
    drm = root / "sys/class/drm"
    nodes = [*drm.glob("renderD*"), *drm.glob("card*")]
    return any(_is_npu(node) and (root / "dev/dri" / node.name).exists() for node in nodes)


def _is_npu(node: Path) -> bool:
    try:
        lines = (node / "device/uevent").read_text("utf-8", "replace").splitlines()
    except OSError:
        lines = []
    if "DRIVER=RKNPU" in lines:
        return True
    try:
        name = (node / "device").readlink().name
    except OSError:
        return False
    return name == "rknpu" or name.endswith(".npu")
