# SPDX-License-Identifier: Apache-2.0
"""How much CPU time other processes took while something was measured.

Two threads that share one of their cores with a stranger do not run at half the speed but at a tenth (each barrier
waits for the slower one), so a repetition that a stranger was in is worth nothing and is measured again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FOREIGN_SHARE = 0.04
"""Ticks of /proc/stat are 10 ms and land on whoever runs at that moment: this share is within their error."""


@dataclass(frozen=True)
class CpuUse:
    """Seconds: of the clock, of this process and its children, of all others. ``foreign_s`` None: cannot be known."""

    window_s: float
    own_s: float
    foreign_s: float | None

    @property
    def disturbed(self) -> bool:
        """Whether others took more than the counters' error, of all CPUs together."""
        limit = FOREIGN_SHARE * self.window_s * (os.cpu_count() or 1)
        return self.foreign_s is not None and self.foreign_s > limit


class CpuWatch:
    """Counts from the moment it is made until ``stop``."""

    def __init__(self) -> None:
        self._busy, self._own, self._begun = busy_seconds(), own_seconds(), time.perf_counter()

    def stop(self) -> CpuUse:
        window, own, busy = time.perf_counter() - self._begun, own_seconds() - self._own, busy_seconds()
        known = busy is not None and self._busy is not None
        return CpuUse(window, own, busy - self._busy - own if known else None)  # type: ignore[operator]


def busy_seconds(stat: Path = Path("/proc/stat")) -> float | None:
    """CPU time that all processes of this machine have used, and what the hypervisor took; None where unknown."""
    try:
        fields = stat.read_text(encoding="ascii").split(maxsplit=9)[1:9]
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields)
    except (OSError, ValueError):
        return None
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """CPU time of this process, of its children that have ended, and of those that run."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system + sum(map(_seconds_of, _children()))


def _children() -> Iterable[int]:
    for task in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from map(int, task.read_text(encoding="ascii").split())


def _seconds_of(pid: int) -> float:
    with suppress(OSError, ValueError, IndexError):
        # The name in parentheses may hold spaces; fields are counted from behind it: utime and stime are 12 and 13.
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0
