# SPDX-License-Identifier: Apache-2.0
"""Findings from the conditions that rows were measured under: a clock that is stuck low, a speed that falls."""

from __future__ import annotations

import re
from collections.abc import Iterable

from reports.catalogue import make_finding
from reports.contract import Finding, Measurement

_CLOCK = re.compile(r"clock low: npu (\d+) MHz \(lowest \d+, maximum (\d+)\)")
_FALLS = re.compile(r"noisy: speed falls steadily, last third ([0-9.]+)% slower")
LEAST_FALL = 10.0
"""Percent. Below this a falling row is marked, but no finding is made of it."""


def condition_findings(rows: Iterable[Measurement]) -> list[Finding]:
    """At most one of each kind, from the row that shows it best."""
    rows = list(rows)
    return [*_clock_low(rows), *_falling(rows)]


def _clock_low(rows: list[Measurement]) -> list[Finding]:
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


def _falling(rows: list[Measurement]) -> list[Finding]:
    falls: list[tuple[float, Measurement]] = []
    for row in rows:
        for reason in row.validity.reasons:
            match = _FALLS.match(reason)
            if match and float(match[1]) >= LEAST_FALL:
                falls.append((float(match[1]), row))
    if not falls:
        return []
    fall, row = max(falls, key=lambda each: each[0])
    words = " ".join(f"{key}={row.parameters[key]}" for key in ("M", "K", "N", "contexts") if key in row.parameters)
    return [
        make_finding(
            "NPU-P025", f"{len(falls)} rows fall while they are measured", fall=fall, row=f"{row.name} {words}"
        )
    ]
