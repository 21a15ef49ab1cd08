# SPDX-License-Identifier: Apache-2.0
"""The GEMM ceiling: published shapes, a grid over types, layouts and quantisation, peak, ridge and roofline points."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from statistics import median

from probes.measurements.spec import (
    BOTH,
    LONG,
    Collected,
    Conclusion,
    Rows,
    Setting,
    Spec,
    derived,
    evidence_number,
    named,
)
from probes.native import NativeProbe
from probes.rows import undisturbed
from reports.catalogue import make_finding
from reports.contract import Finding, JsonValue, Measurement

FAMILY = ("type", "type_name", "B_layout", "AC_layout", "B_quant")
RATED_TYPE = 2
"""The rated figure of these chips is of int8; a share of it is told for int8 x int8 alone."""

LEAST_SHARE = 0.15
"""Of the rated int8 figure. RK3588 with librknnrt 2.3.2 reaches 34 % at its full clock (marfrit/rk-llama.cpp bench) and
10 % or less with the NPU left at 200 of 1000 MHz."""

SLOW_LAYOUT = 4.0
"""int4 with A and C in normal layout is some 80 times slower than native (unimatrix099); ordinary differences between
the layouts stay within two."""

JITTER_SHARE = 0.03
LONG_RUN_US = 5000.0
_METHOD = (
    "Highest rate of all measured shapes of one type, layout and quantisation. ridge: the operations per byte at which "
    "that rate needs all of the bandwidth that M = 1 reached; below it a product is bound by memory."
)


def _plan(setting: Setting) -> tuple[NativeProbe, ...]:
    whole = setting.level == LONG
    rated = ("--rated-tops", f"{setting.rated_core_tops:g}") if setting.rated_core_tops else ()
    types = ("--type", "2,1,10,3,4,5,6,7,8,9,11") if whole else ()
    return (
        NativeProbe(
            step="gemm",
            program="mm_peak",
            arguments=(*rated, "--seconds", "1.0" if whole else "0.5"),
            deadline_s=120,
            covers="GEMM rate on one core by shape, layout and quantisation, every element of C proven",
        ),
        NativeProbe(
            step="grid",
            program="mm_grid",
            arguments=(*types, "--seconds", "0.2") if whole else ("--quick", "--seconds", "0.04"),
            deadline_s=400 if whole else 90,
            covers="rate over M and the highest rate of each type, layout and quantisation, every element of C proven",
        ),
    )


def families(rows: Rows) -> list[list[Measurement]]:
    """Rows of one type, layout and quantisation together, fastest first."""

    def key(row: Measurement) -> tuple[str, ...]:
        return tuple(str(row.parameters.get(name)) for name in FAMILY)

    ordered = sorted(named(rows, "gemm_rate"), key=key)
    return [sorted(group, key=lambda row: -(row.median or 0)) for _, group in groupby(ordered, key)]


def ceiling(family: Sequence[Measurement], rated: float | None) -> Measurement:
    """The best rate of a family, with its roofline points and the ridge."""
    best = family[0]
    rate = best.median or 0.0
    points: list[JsonValue] = [
        [evidence_number(row, "ops_per_byte"), row.median, *(row.parameters.get(key) for key in "MKN")]
        for row in family
        if evidence_number(row, "ops_per_byte") is not None
    ]
    streams = [
        (row.median or 0) * 1e12 / per_byte
        for row in family
        if row.parameters.get("M") == 1 and (per_byte := evidence_number(row, "ops_per_byte"))
    ]
    bandwidth = max(streams, default=None)
    rated = rated if best.parameters.get("type") == RATED_TYPE else None
    return derived(
        "gemm_ceiling",
        [best],
        parameters={key: best.parameters.get(key) for key in FAMILY},
        unit="tops",
        value=rate,
        method=_METHOD,
        evidence={
            "at": [best.parameters.get(key) for key in "MKN"],
            "rows": len(family),
            "share_of_rated": rate / rated if rated else None,
            "rated_core_tops": rated,
            "stream_at_M_1_gbps": bandwidth / 1e9 if bandwidth else None,
            "ridge_ops_per_byte": rate * 1e12 / bandwidth if bandwidth else None,
            "roofline_points": points,
        },
    )


def _slow_layouts(ceilings: Sequence[Measurement]) -> list[Finding]:
    found = []
    for row in ceilings:
        if row.parameters.get("AC_layout") != "native" or not row.median:
            continue
        if not all(map(undisturbed, ceilings)):
            continue
        same = named(ceilings, "gemm_ceiling", type=row.parameters.get("type"), AC_layout="norm")
        slower = [other for other in same if other.median and other.median * SLOW_LAYOUT < row.median]
        if slower and len(slower) == len(same):
            worst = max(slower, key=lambda other: other.median or 0)
            evidence = f"{row.median:.3g} TOPS native against {worst.median:.3g} with A and C in normal layout"
            ratio = row.median / (worst.median or 1)
            found.append(make_finding("NPU-P024", evidence, type_name=row.parameters.get("type_name"), ratio=ratio))
    return found


def _far_below_rated(ceilings: Sequence[Measurement]) -> list[Finding]:
    shares = [
        (share, row)
        for row in ceilings
        if undisturbed(row) and (share := evidence_number(row, "share_of_rated")) is not None
    ]
    if not shares:
        return []
    share, row = max(shares, key=lambda each: each[0])
    if share >= LEAST_SHARE:
        return []
    rated = evidence_number(row, "rated_core_tops")
    return [make_finding("NPU-P027", f"{row.median:.3g} of {rated:.3g} TOPS on one core", share=100 * share)]


def _jitter(rows: Rows) -> list[Finding]:
    """Long runs alone: short ones also show what else the CPU does."""
    quiet = [row for row in named(rows, "gemm_rate") if undisturbed(row) and row.mad is not None]
    long_runs = [row for row in quiet if _run_us(row) >= LONG_RUN_US]
    noisy = [row for row in long_runs if (row.mad or 0) > JITTER_SHARE * (row.median or 1)]
    if len(long_runs) < 3 or 2 * len(noisy) < len(long_runs):
        return []
    spread = median(100 * (row.mad or 0) / (row.median or 1) for row in noisy)
    evidence = f"{len(noisy)} of {len(long_runs)} rows of runs longer than {LONG_RUN_US / 1000:.0f} ms"
    return [make_finding("NPU-P026", evidence, spread=spread)]


def _run_us(row: Measurement) -> float:
    timing = row.evidence.get("run_us")
    value = timing.get("median") if isinstance(timing, dict) else None
    return float(value) if isinstance(value, (int, float)) else 0.0


def conclude(rows: Rows, setting: Setting) -> Conclusion:
    """Ceilings by family; slow layouts, a rate far below the rated one, and times that do not hold still."""
    collected = Collected()
    collected.rows += [ceiling(family, setting.rated_core_tops) for family in families(rows)]
    collected.findings += _slow_layouts(collected.rows)
    collected.findings += _far_below_rated(collected.rows)
    collected.findings += _jitter([row for row in rows if row.parameters.get("series") != "grid"])
    return collected.done()


SPEC = Spec(
    name="gemm",
    what="Highest GEMM rate of one core by type, layout and quantisation; roofline points; share of the rated figure.",
    how="mm_peak on the published shapes, then mm_grid: M over powers of two, K and N by climbing from the best M.",
    spoiled_by="Clocks below their maximum, heat, and other users of the NPU, the memory or the calling CPU core.",
    levels=BOTH,
    plan=_plan,
    conclude=conclude,
)
