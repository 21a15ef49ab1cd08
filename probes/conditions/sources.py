# SPDX-License-Identifier: Apache-2.0
"""Where the conditions of a Rockchip board are shown, found once under a root, and one look at all of them.

Facts: the NPU's devfreq entry is named ``<address>.npu`` (fdab0000 on RK3588, 27700000 on RK3576, fde40000
on RK356x, ff300000 on RK3562, 22000000 on RV1126B: rknn-llm ``fix_freq_*.sh``) and the memory controller's
``dmc``. Zones and cooling devices are matched by ``type``, because their numbers differ from kernel to
kernel. ``cur_freq`` of the NPU stays at the operating point while the clock itself is parked during runtime
suspend, so only samples taken during a row say anything about the row.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from probes.conditions import files, parse
from probes.conditions.sample import Load, Phase, Policy, Ranges, Sample

_Value = TypeVar("_Value")

_TRIPS_READ = 16
_PROC_STAT_BYTES = 1 << 20
"""The ``intr`` line alone can be tens of KiB; the ``cpu`` line stands first, the ``cpuN`` lines follow it."""


@dataclass(frozen=True)
class Sources:
    """The files of one machine. Make it with :meth:`find`; ``sample`` takes one look."""

    root: Path
    ranges: Ranges
    npu: Path | None
    ddr: Path | None
    policies: dict[str, Path] = field(default_factory=dict)
    zones: dict[str, Path] = field(default_factory=dict)
    cooling: dict[str, Path] = field(default_factory=dict)
    ticks_per_s: int = 100

    @classmethod
    def find(cls, root: Path, *, ticks_per_s: int | None = None) -> Sources:
        """Everything there is under ``root``; what is absent stays None or empty. ``ticks_per_s`` for
        copied trees."""
        devfreq = root / "sys/class/devfreq"
        npu = _first(root, devfreq, lambda name: name.endswith(".npu"))
        ddr = _first(root, devfreq, lambda name: name == "dmc")
        policies = _numbered(root, root / "sys/devices/system/cpu/cpufreq", "policy")
        zones = _by_type(root, root / "sys/class/thermal", "thermal_zone")
        ranges = Ranges(
            npu_name=npu.name if npu else None,
            npu_max_hz=_top(npu),
            ddr_max_hz=_top(ddr),
            policies={name: _policy(folder) for name, folder in policies.items()},
            trips_c={name: trip for name, folder in zones.items() if (trip := _lowest_trip(folder)) is not None},
            cpus=parse.cpus_online(files.read_text(root / "proc/stat", _PROC_STAT_BYTES)) or 1,
        )
        return cls(
            root=root,
            ranges=ranges,
            npu=npu,
            ddr=ddr,
            policies=policies,
            zones=zones,
            cooling=_by_type(root, root / "sys/class/thermal", "cooling_device"),
            ticks_per_s=ticks_per_s or os.sysconf("SC_CLK_TCK"),
        )

    def sample(self, phase: Phase, at_s: float, *, pid: int, with_load: bool) -> Sample:
        """One look; ``pid`` is the process whose own load, descendants included, is not foreign.

        ``with_load`` reads load, swapping and governors too, which is more work than all the rest.
        """
        vmstat = files.read_text(self.root / "proc/vmstat", 65536) if with_load else None
        swapped = parse.swapped_pages(vmstat)
        return Sample(
            at_s=at_s,
            phase=phase,
            ranges=self.ranges,
            npu_hz=_clock(self.npu, "cur_freq"),
            npu_limit_hz=_clock(self.npu, "max_freq"),
            ddr_hz=_clock(self.ddr, "cur_freq"),
            ddr_limit_hz=_clock(self.ddr, "max_freq"),
            cpu_hz=self._cpu_clocks("scaling_cur_freq"),
            cpu_limit_hz=self._cpu_clocks("scaling_max_freq"),
            temperature_c=_known(
                (name, parse.celsius(files.read_text(zone / "temp"))) for name, zone in self.zones.items()
            ),
            cooling=_known(
                (name, parse.whole(files.read_text(dev / "cur_state"))) for name, dev in self.cooling.items()
            ),
            governors=self._governors() if with_load else {},
            load=self._load(pid) if with_load else None,
            swap_in_pages=swapped[0] if swapped else None,
            swap_out_pages=swapped[1] if swapped else None,
        )

    def _cpu_clocks(self, name: str) -> dict[str, int]:
        return _known(
            (policy, parse.hertz(files.read_text(folder / name), unit=1000)) for policy, folder in self.policies.items()
        )

    def _governors(self) -> dict[str, str]:
        places = {"npu": self.npu and self.npu / "governor", "ddr": self.ddr and self.ddr / "governor"}
        places.update({name: folder / "scaling_governor" for name, folder in self.policies.items()})
        return _known((name, parse.word(files.read_text(place))) for name, place in places.items() if place)

    def _load(self, pid: int) -> Load | None:
        busy = parse.busy_ticks(files.read_text(self.root / "proc/stat", _PROC_STAT_BYTES))
        own = own_ticks(self.root / "proc", pid)
        if busy is None or own is None:
            return None
        return Load(all_s=busy / self.ticks_per_s, own_s=own / self.ticks_per_s)


def own_ticks(proc: Path, pid: int) -> int | None:
    """Ticks of ``pid`` and all its descendants, dead ones included once they are reaped; None when ``pid``
    is not there.

    A process's time moves into its parent's ``cutime`` when it is reaped and is gone from ``/proc`` at that
    moment, so the sum over the living counts each tick once. Every process is looked at, because the
    ``children`` file is a kernel option that vendor kernels leave out.
    """
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for name in files.names(proc):
        if not (name.isascii() and name.isdigit()):
            continue
        found = parse.process_ticks(files.read_text(proc / name / "stat"))
        if found is not None:
            ticks[int(name)] = found[1]
            children.setdefault(found[0], []).append(int(name))
    if pid not in ticks:
        return None
    total, todo, seen = 0, [pid], set[int]()
    while todo:
        process = todo.pop()
        if process not in seen:
            seen.add(process)
            total += ticks.get(process, 0)
            todo.extend(children.get(process, ()))
    return total


def _known(pairs: Iterable[tuple[str, _Value | None]]) -> dict[str, _Value]:
    return {name: value for name, value in pairs if value is not None}


def _first(root: Path, folder: Path, wanted: Callable[[str], bool]) -> Path | None:
    return next((files.inside(root, folder / name) for name in files.names(folder) if wanted(name)), None)


def _numbered(root: Path, folder: Path, prefix: str) -> dict[str, Path]:
    names = [name for name in files.names(folder) if re.fullmatch(prefix + "[0-9]+", name)]
    return _known((name, files.inside(root, folder / name)) for name in names)


def _by_type(root: Path, folder: Path, prefix: str) -> dict[str, Path]:
    """Entries by the word in their ``type`` file. Where one comes twice, the later carry their entry's
    name."""
    found: dict[str, Path] = {}
    for name, place in _numbered(root, folder, prefix).items():
        kind = parse.word(files.read_text(place / "type")) or name
        found[kind if kind not in found else f"{kind}@{name}"] = place
    return found


def _clock(folder: Path | None, name: str) -> int | None:
    return parse.hertz(files.read_text(folder / name)) if folder else None


def _top(folder: Path | None) -> int | None:
    if folder is None:
        return None
    return parse.highest_hertz(files.read_text(folder / "available_frequencies")) or _clock(folder, "max_freq")


def _policy(folder: Path) -> Policy:
    return Policy(
        cpus=parse.cpu_list(files.read_text(folder / "related_cpus")),
        max_hz=parse.hertz(files.read_text(folder / "cpuinfo_max_freq"), unit=1000),
    )


def _lowest_trip(zone: Path) -> float | None:
    trips = []
    for number in range(_TRIPS_READ):
        if parse.word(files.read_text(zone / f"trip_point_{number}_type")) in ("passive", "critical"):
            degrees = parse.celsius(files.read_text(zone / f"trip_point_{number}_temp"))
            if degrees is not None and degrees > 0:
                trips.append(degrees)
    return min(trips, default=None)
