# SPDX-License-Identifier: Apache-2.0
"""Pure readers of the small texts that the kernel shows about clocks, heat and load. Garbage gives None,
never an error."""

from __future__ import annotations

import re

_WHOLE = re.compile(r"-?[0-9]{1,19}")
_LONGEST_CPU_LIST = 4096
HIGHEST_HZ = 10_000_000_000
"""No clock of these boards is near it; a larger number is not a clock."""

SENSOR_RANGE_C = (-40.0, 150.0)
"""Outside of it a sensor is off or broken. 0 stays: boards are used in the cold."""


def whole(text: str | None) -> int | None:
    """The one decimal integer that ``text`` consists of."""
    if text is None:
        return None
    stripped = text.strip()
    return int(stripped) if _WHOLE.fullmatch(stripped) else None


def hertz(text: str | None, *, unit: int = 1) -> int | None:
    """A clock in Hz; ``unit`` is 1 for devfreq files and 1000 for cpufreq files. 0 is no clock, so None."""
    value = whole(text)
    if value is None or not 0 < value * unit <= HIGHEST_HZ:
        return None
    return value * unit


def highest_hertz(text: str | None) -> int | None:
    """The highest entry of devfreq's ``available_frequencies``; words that are no clock are passed over."""
    clocks = [clock for clock in map(hertz, (text or "").split()) if clock is not None]
    return max(clocks, default=None)


def celsius(text: str | None) -> float | None:
    """A temperature file: millidegrees. Readings that no working sensor gives are None."""
    value = whole(text)
    if value is None:
        return None
    degrees = value / 1000
    return degrees if SENSOR_RANGE_C[0] <= degrees <= SENSOR_RANGE_C[1] else None


def word(text: str | None) -> str | None:
    """One word of printable ASCII, such as a governor or a zone type."""
    stripped = (text or "").strip()
    if not stripped or len(stripped) > 64 or not all("!" <= char <= "~" for char in stripped):
        return None
    return stripped


def cpu_list(text: str | None) -> frozenset[int]:
    """CPU numbers of a kernel list, ``0-3,6`` or ``0 1 2 3``; empty when it is anything else."""
    cpus: set[int] = set()
    for part in re.split(r"[,\s]+", (text or "").strip()):
        found = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part)
        if not found:
            return frozenset()
        first, last = int(found[1]), int(found[2] or found[1])
        if last < first or last >= _LONGEST_CPU_LIST:
            return frozenset()
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def busy_ticks(stat: str | None) -> int | None:
    """Ticks that all CPUs together spent on anything, from the ``cpu`` line of ``/proc/stat``.

    user + nice + system + irq + softirq + steal. ``guest`` is part of user already; idle and iowait are no
    work. A hypervisor's steal counts: it takes the CPU away just as a foreign process does.
    """
    for line in (stat or "").splitlines():
        fields = line.split()
        if fields[:1] == ["cpu"]:
            values = [whole(field) for field in fields[1:9]]
            if len(values) < 4 or any(value is None or value < 0 for value in values):
                return None
            ticks = [value or 0 for value in values] + [0] * (8 - len(values))
            return ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7]
    return None


def cpus_online(stat: str | None) -> int | None:
    """How many ``cpuN`` lines ``/proc/stat`` has: the CPUs that are online."""
    return sum(1 for line in (stat or "").splitlines() if re.match(r"cpu[0-9]+ ", line)) or None


def process_ticks(stat: str | None) -> tuple[int, int] | None:
    """(parent pid, ticks) of a ``/proc/PID/stat``: utime + stime + cutime + cstime, reaped children included.

    The name in parentheses may itself hold spaces and parentheses, so fields are counted from the last one.
    """
    _, bracket, rest = (stat or "").rpartition(")")
    fields = rest.split()
    if not bracket or len(fields) < 15:
        return None
    values = [whole(field) for field in [fields[1], *fields[11:15]]]
    if any(value is None or value < 0 for value in values):
        return None
    parent, *ticks = [value or 0 for value in values]
    return parent, sum(ticks)


def swapped_pages(vmstat: str | None) -> tuple[int, int] | None:
    """(pages swapped in, pages swapped out) since boot, from ``/proc/vmstat``."""
    found: dict[str, int] = {}
    for line in (vmstat or "").splitlines():
        name, _, value = line.partition(" ")
        number = whole(value)
        if name in ("pswpin", "pswpout") and number is not None and number >= 0:
            found[name] = number
    return (found["pswpin"], found["pswpout"]) if len(found) == 2 else None
