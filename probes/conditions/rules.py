# SPDX-License-Identifier: Apache-2.0
"""Which reasons can make a row invalid, and from where on; and which of them fit a row by its name and
unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probes.conditions.parse import cpu_list


@dataclass(frozen=True)
class Rules:
    """Which reasons apply to a row, and from where on.

    ``simulated``: the row's time is modelled, so that clocks and heat of this machine say nothing. ``clocks``
    are judged where they can be read ("npu", "ddr", "cpu"); one in ``needed`` that cannot be read is a reason
    itself. The clock of memory is for rows of bandwidth: ``dmc_ondemand`` keeps it low for as long as the
    load is, which takes nothing from other rows; and an absent ``dmc`` does not mean slow memory (Orange Pi
    5 Plus, 5.10). ``cpus``: those the row ran on. ``higher_is_better``: True for rates, False for times.
    Shares are of 1.
    """

    simulated: bool = False
    clocks: frozenset[str] = frozenset({"npu"})
    needed: frozenset[str] = frozenset({"npu"})
    cpus: frozenset[int] | None = None
    higher_is_better: bool = True
    clock_share: float = 0.90
    low_samples_share: float = 0.10
    foreign_share: float = 0.05
    least_foreign_cpus: float = 0.10
    cold_share: float = 0.10
    noise_share: float = 0.03


TIME_UNITS = frozenset({"ns", "us", "ms", "s"})
"""Units of rows where less is better. Everything else the kit measures is a rate."""

_CPU_ROWS = {
    "cpu_bandwidth": frozenset({"ddr", "cpu"}),
    "cpu_rate": frozenset({"cpu"}),
    "cpu_clock": frozenset({"cpu"}),
}


def rules_for(name: str, unit: str, parameters: Mapping[str, object], *, simulated: bool) -> Rules:
    """The rules for a measurement of the kit.

    Rows of the CPUs are of this machine even where the NPU is simulated, and are judged by the clocks of
    the CPUs they were pinned to, as far as cpufreq shows them. All other rows are the NPU's.
    """
    higher = unit not in TIME_UNITS
    clocks = _CPU_ROWS.get(name)
    if clocks is None:
        moved = frozenset({"ddr"}) if unit == "gbps" else frozenset[str]()
        return Rules(simulated=simulated, clocks=moved | {"npu"}, higher_is_better=higher)
    cpus = cpu_list(str(parameters.get("cpus", parameters.get("cpu", "")))) or None
    return Rules(clocks=clocks, needed=frozenset(), cpus=cpus, higher_is_better=higher)
