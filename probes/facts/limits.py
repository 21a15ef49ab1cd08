# SPDX-License-Identifier: Apache-2.0
"""Limits that large models run into: open files, locked memory, memory maps."""

from __future__ import annotations

from probes.facts.parse import integer, integers, limits
from probes.facts.sheet import Pen


def collect(pen: Pen) -> None:
    """``limits.*`` and ``host.load1``. A limit that is not set is reported as null with the reason ``unlimited``."""
    answer = pen.system.text("/proc/self/limits")
    table = limits(answer.value)
    for key, name in (
        ("nofile", "Max open files"),
        ("memlock_bytes", "Max locked memory"),
        ("address_space_bytes", "Max address space"),
    ):
        for side, value in zip(("soft", "hard"), table.get(name, (None, None)), strict=True):
            why = "unlimited" if name in table else answer.reason
            pen.put(f"limits.{key}_{side}", value, answer.path, reason=why)
    for key, path in (
        ("limits.file_max", "/proc/sys/fs/file-max"),
        ("limits.nr_open", "/proc/sys/fs/nr_open"),
        ("limits.max_map_count", "/proc/sys/vm/max_map_count"),
    ):
        one = pen.system.text(path, limit=256)
        pen.take(key, one, integer(one.value))
    used = pen.system.text("/proc/sys/fs/file-nr", limit=256)
    numbers = integers(used.value)
    pen.take("limits.files_open", used, numbers[0] if numbers else None)
    uptime = pen.system.text("/proc/uptime", limit=256)
    seconds = integer((uptime.value or "").partition(".")[0], 0, 10**10)
    pen.take("host.uptime_s", uptime, seconds)
    load = pen.system.text("/proc/loadavg", limit=256)
    first = (load.value or "").split()
    number = float(first[0]) if first and first[0].replace(".", "", 1).isdigit() and len(first[0]) < 12 else None
    pen.take("host.load1", load, number)
