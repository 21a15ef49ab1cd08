# SPDX-License-Identifier: Apache-2.0
"""The conditions of a window as JSON, for the evidence of a row: lowest, median and highest of each
quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median

from probes.conditions.judge import foreign_cpus
from probes.conditions.sample import Phase, Sample
from reports.contract import JsonValue

PINNING_GOVERNORS = frozenset({"performance", "userspace"})
"""Governors that hold a clock; every other one moves it with load."""


def summarise(samples: Sequence[Sample]) -> dict[str, JsonValue]:
    """What a reader needs to trust a row. Unknown is null, and ``unknown`` says why; units stand in the
    names.

    Clocks are of the samples during the row where there are any; temperatures and cooling states of the
    whole window. ``foreign_cpus`` is the number of CPUs that other processes kept busy on average.
    """
    during = [sample for sample in samples if sample.phase is Phase.DURING] or list(samples)
    governors = {name: word for sample in samples for name, word in sample.governors.items()}
    ranges = samples[0].ranges if samples else None
    unknown: dict[str, JsonValue] = {}
    document: dict[str, JsonValue] = {
        "samples": len(samples),
        "samples_during": sum(sample.phase is Phase.DURING for sample in samples),
        "duration_s": round(samples[-1].at_s - samples[0].at_s, 3) if samples else 0.0,
        "npu_clock_hz": _spread(sample.npu_hz for sample in during),
        "npu_clock_max_hz": ranges.npu_max_hz if ranges else None,
        "ddr_clock_hz": _spread(sample.ddr_hz for sample in during),
        "ddr_clock_max_hz": ranges.ddr_max_hz if ranges else None,
        "cpu_clock_hz": _spreads(during, lambda sample: sample.cpu_hz),
        "temperature_c": _spreads(samples, lambda sample: sample.temperature_c),
        "cooling_state": _spreads(samples, lambda sample: sample.cooling),
        "governors": dict(sorted(governors.items())),
        "governing": _governing(governors.values()),
        "foreign_cpus": _rounded(foreign_cpus(samples)),
        "swap_in_pages": _grown([sample.swap_in_pages for sample in samples]),
        "swap_out_pages": _grown([sample.swap_out_pages for sample in samples]),
    }
    for name, why in _WHY_UNKNOWN.items():
        if document[name] is None:
            unknown[name] = why if samples else "conditions were not sampled"
    document["unknown"] = unknown
    return document


_WHY_UNKNOWN = {
    "npu_clock_hz": "no readable cur_freq of a devfreq entry named *.npu",
    "ddr_clock_hz": "no readable cur_freq of the devfreq entry dmc; its absence does not mean slow memory",
    "foreign_cpus": "/proc/stat was not read before and after the row",
    "swap_in_pages": "/proc/vmstat was not read before and after the row",
    "swap_out_pages": "/proc/vmstat was not read before and after the row",
    "governing": "no governor is shown",
}


def _spread(values: Iterable[float | None]) -> JsonValue:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"min": min(known), "median": median(known), "max": max(known)}


def _spreads(samples: Sequence[Sample], read: Callable[[Sample], Mapping[str, float]]) -> JsonValue:
    names = sorted({name for sample in samples for name in read(sample)})
    return {name: _spread(read(sample).get(name) for sample in samples) for name in names}


def _governing(governors: Iterable[str]) -> JsonValue:
    """``pinned`` when every governor holds its clock, ``default`` when one moves it; null without any."""
    words = set(governors)
    if not words:
        return None
    return "pinned" if words <= PINNING_GOVERNORS else "default"


def _grown(counts: Sequence[int | None]) -> JsonValue:
    known = [count for count in counts if count is not None]
    return known[-1] - known[0] if len(known) >= 2 else None


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
