# SPDX-License-Identifier: Apache-2.0
"""What one look at the conditions of a machine gives, and the ranges its values are held against. Records
only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class Phase(str, Enum):
    """When a sample was taken, seen from the row it belongs to."""

    BEFORE = "before"
    DURING = "during"
    AFTER = "after"


@dataclass(frozen=True)
class Policy:
    """One cpufreq policy: the CPUs it clocks and the highest clock the hardware is said to reach."""

    cpus: frozenset[int]
    max_hz: int | None


@dataclass(frozen=True)
class Ranges:
    """What does not change while a machine runs.

    ``npu_max_hz`` and ``ddr_max_hz`` are the highest entry of ``available_frequencies``: it is what the
    board can be asked for (the device tree of RK3588 lists DDR rates that were never trained). ``trips_c``
    holds, by zone, the lowest passive or critical trip point. ``cpus`` is the number of CPUs that are
    online.
    """

    npu_name: str | None = None
    npu_max_hz: int | None = None
    ddr_max_hz: int | None = None
    policies: Mapping[str, Policy] = field(default_factory=dict)
    trips_c: Mapping[str, float] = field(default_factory=dict)
    cpus: int = 1


@dataclass(frozen=True)
class Load:
    """CPU seconds since boot, summed over all CPUs: of everything, and of this process with all its
    descendants."""

    all_s: float
    own_s: float


@dataclass(frozen=True)
class Sample:
    """One look. A quantity that could not be read is None or missing from its mapping; it is never 0.

    ``at_s`` is monotonic seconds. Clocks are in Hz, temperatures in degrees Celsius by zone type,
    ``cooling`` is the state by cooling device type (0 means that it does nothing). ``*_limit_hz`` are the
    limits in force, which thermal code and users lower. Load, swapping and governors are read at the edges
    of a row and once a second within.
    """

    at_s: float
    phase: Phase
    ranges: Ranges
    npu_hz: int | None = None
    npu_limit_hz: int | None = None
    ddr_hz: int | None = None
    ddr_limit_hz: int | None = None
    cpu_hz: Mapping[str, int] = field(default_factory=dict)
    cpu_limit_hz: Mapping[str, int] = field(default_factory=dict)
    temperature_c: Mapping[str, float] = field(default_factory=dict)
    cooling: Mapping[str, int] = field(default_factory=dict)
    governors: Mapping[str, str] = field(default_factory=dict)
    load: Load | None = None
    swap_in_pages: int | None = None
    swap_out_pages: int | None = None
