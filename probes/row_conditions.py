# SPDX-License-Identifier: Apache-2.0
"""Findings from the conditions that rows were measured under: a clock that is stuck low, a speed that falls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from statistics import median

from probes.rows import undisturbed
from reports.catalogue import make_finding
from reports.contract import Finding, Measurement

_CLOCK = re.compile(r"clock low: npu (\d+) MHz \(lowest \d+, maximum (\d+)\)")
LEAST_FALL = 0.10
FEWEST_SAMPLES = 9
STEADY = 0.95
"""Share of all pairs of samples in which the later one is slower. Nine samples in random order pass once in 40,000."""

RATES = frozenset({"gemm_rate", "core_scaling", "npu_stream", "soak"})
LONG_RUN_US = 1000.0
"""Rows of shorter runs show what else the CPU does."""


def condition_findings(rows: Iterable[Measurement]) -> list[Finding]:
    """At most one of each kind, from the row that shows it best."""
    rows = list(rows)
    return [*_clock_low(rows), *_falling(rows)]


def _clock_low(rows: Sequence[Measurement]) -> list[Finding]:
    for row in rows:
        for reason in row.validity.reasons:
            match = _CLOCK.match(reason)
            if match:
                return [
                    make_finding(
                        "NPU-P011",
                        f"{row.name}: {reason}",
                        now_mhz=int(match[1]),
                        of=f" of {match[2]}",
                        reason="It stayed there while the NPU worked on measurements.",
                        command="cat /sys/class/devfreq/*.npu/governor /sys/class/devfreq/*.npu/available_frequencies",
                    )
                ]
    return []


def steady_fall(samples: Sequence[float]) -> float:
    """By which share a rate falls from its first third to its last, where it falls all the way; else 0."""
    count = len(samples)
    if count < FEWEST_SAMPLES:
        return 0.0
    pairs = [samples[j] < samples[i] for i in range(count) for j in range(i + 1, count)]
    early, late = median(samples[: count // 3]), median(samples[-(count // 3) :])
    if early <= 0 or sum(pairs) < STEADY * len(pairs):
        return 0.0
    return 1 - late / early


def _falling(rows: Sequence[Measurement]) -> list[Finding]:
    falls = [
        (fall, row)
        for row in rows
        if row.name in RATES
        and undisturbed(row)
        and _run_us(row) >= LONG_RUN_US
        and (fall := steady_fall(row.samples)) >= LEAST_FALL
    ]
    if not falls:
        return []
    fall, row = max(falls, key=lambda each: each[0])
    words = " ".join(f"{key}={row.parameters[key]}" for key in ("M", "K", "N", "contexts") if key in row.parameters)
    evidence = f"{len(falls)} rows fall while they are measured"
    return [make_finding("NPU-P025", evidence, fall=100 * fall, row=f"{row.name} {words}")]


def _run_us(row: Measurement) -> float:
    timing = row.evidence.get("run_us")
    value = timing.get("median") if isinstance(timing, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0
