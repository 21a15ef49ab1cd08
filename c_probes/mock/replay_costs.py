# SPDX-License-Identifier: Apache-2.0
"""The parts of a report that are not speeds of products: costs of calls, bandwidth, largest sizes.

Each function gives configuration lines of the mock, none where the report holds no usable row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from c_probes.mock.replay_rows import measurements, parameter, positive, usable, whole

CLASS_OF_TYPE = {1: "f16", 4: "f16", 2: "i8", 3: "i8", 9: "i8", 10: "i4"}
"""Types whose limits the mock knows by the type of A."""

COSTS = (
    ({"part": "fixed"}, "timing.fixed_us"),
    ({"part": "bind", "B_layout": "native"}, "timing.bind_native_us"),
    ({"part": "bind", "B_layout": "norm"}, "timing.bind_norm_us"),
    ({"part": "create"}, "timing.create_us"),
    ({"part": "destroy"}, "timing.destroy_us"),
)


def _matching(rows: Iterable[dict[str, Any]], wanted: dict[str, str]) -> list[dict[str, Any]]:
    return [row for row in rows if all(parameter(row, key) == value for key, value in wanted.items())]


def call_costs(report: Any) -> list[str]:
    """Microseconds of a run that does nothing, of binding, creating and destroying."""
    rows = [row for row in measurements(report, "run_cost") if usable(row) and row.get("unit") == "us"]
    lines = []
    for wanted, key in COSTS:
        for row in _matching(rows, wanted)[:1]:
            lines.append(f"{key} = {row['median']:.6g}")
            size = whole(parameter(row, "bytes"))
            if key == "timing.bind_norm_us" and size:
                lines.append(f"timing.bind_norm_bytes = {size}")
    points = sorted(
        (size, float(row["median"]))
        for row in _matching(rows, {"part": "sync", "direction": "to_device"})
        if (size := whole(parameter(row, "bytes")))
    )
    if len(points) > 1 and points[-1][1] > points[0][1] and points[-1][0] > points[0][0]:
        (small, fast), (large, slow) = points[0], points[-1]
        per_byte = (slow - fast) / (large - small)
        lines.append(f"timing.sync_us = {max(0.0, fast - small * per_byte):.6g}")
        lines.append(f"timing.sync_gbps = {1e-3 / per_byte:.6g}")
    return lines


def bandwidth(report: Any) -> list[str]:
    """Gigabytes per second of one core and of the most cores together, without the fixed cost of each run."""
    fixed = [row for row in _matching(measurements(report, "run_cost"), {"part": "fixed"}) if usable(row)]
    fixed_s = float(fixed[0]["median"]) * 1e-6 if fixed else 0.0
    found: dict[int, float] = {}
    for row in measurements(report, "npu_stream"):
        contexts, gbps = whole(parameter(row, "contexts")), positive(row.get("median"))
        k, n = whole(parameter(row, "K")), whole(parameter(row, "N"))
        if not usable(row) or row.get("unit") != "gbps" or not (contexts and gbps and k and n):
            continue
        bits = {"f16": 16, "i8": 8, "i4": 4}.get(CLASS_OF_TYPE.get(whole(parameter(row, "type")) or 0, ""), 0)
        streaming_s = contexts * k * n * bits / 8 / (gbps * 1e9) - fixed_s
        if bits and streaming_s > 0:
            found[contexts] = contexts * k * n * bits / 8 / streaming_s / 1e9
    lines = [f"timing.bw_core_gbps = {found[1]:.6g}"] if 1 in found else []
    if found and max(found) > 1:
        lines.append(f"timing.bw_shared_gbps = {found[max(found)]:.6g}")
    return lines


def size_limits(report: Any) -> list[str]:
    """Largest K by class of A and largest N that create accepted, where the search came to an end."""
    k_max: dict[str, int] = {}
    n_max: list[int] = []
    for row in measurements(report, "shape_limit"):
        evidence = row.get("evidence")
        open_end = isinstance(evidence, dict) and bool(evidence.get("at_least"))
        size, name = whole(row.get("median")), CLASS_OF_TYPE.get(whole(parameter(row, "type")) or 0)
        if open_end or not usable(row) or parameter(row, "limit") != "accepted" or not size or not name:
            continue
        if parameter(row, "dimension") == "K":
            k_max[name] = max(k_max.get(name, 0), size)
        if parameter(row, "dimension") == "N":
            n_max.append(size)
    lines = [f"limits.k_max_{name} = {size}" for name, size in sorted(k_max.items())]
    return [*lines, f"limits.n_max = {max(n_max)}"] if n_max else lines
