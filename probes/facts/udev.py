# SPDX-License-Identifier: Apache-2.0
"""What the udev database adds about the NPU's node: stable links, path id, tags. An extra, never a condition."""

from __future__ import annotations

from probes.facts.sheet import Pen


def collect(pen: Pen) -> None:
    """``npu.udev``: the properties of the node, where pyudev, libudev and a running udev are there."""
    node = pen.sheet.text("npu.device_node")
    if node is None:
        pen.put("npu.udev", None, "udev database", reason="no device node of the NPU to ask for")
        return
    answer = pen.system.udev(node)
    pen.put("npu.udev", answer.value, "udev database", reason=answer.detail or "udev knows nothing of it")
