# SPDX-License-Identifier: Apache-2.0
"""What others say about this stack, held against the rows of a report: each claim holds here, does not, or was not
measured.

A claim is a relation between rows of one report, so that a clock or a governor cannot decide it; figures with their
conditions are the matter of ``reports/baselines``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reports.page_groups import UNITS
from reports.page_provenance import row_anchor, row_index
from reports.page_reading import (
    Record,
    count_of,
    evidence,
    is_right,
    is_valid,
    number_of,
    parameters,
    positive,
    simulated,
    words,
)

UNKNOWN = "not measured"
_CAMPAIGN = "RK3588 campaign with librknnrt 2.3.2, 2026-07"
Row = tuple[int, Record]


@dataclass(frozen=True)
class ClaimRow:
    """One claim and what the report says to it. ``anchors`` lead to the rows that decided.

    ``verdict`` names the mock where that answered; ``tone`` is good, error or, where nothing decided, plain.
    """

    text: str
    source: str
    verdict: str
    tone: str
    shown: str
    anchors: tuple[str, ...]
    valid: bool


@dataclass(frozen=True)
class _Judged:
    holds: bool
    shown: str
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class _Claim:
    text: str
    source: str
    needs: str
    judge: Callable[[list[Row]], _Judged | None]


def claim_rows(report: Record) -> tuple[ClaimRow, ...]:
    """All claims with their verdicts, in the order of the table below. Rows with a wrong result decide nothing."""
    rows = [(index, row) for index, row in row_index(report) if is_right(row)]
    where = "on the mock" if simulated(report) else "here"
    return tuple(_judged(claim, rows, where) for claim in _CLAIMS)


def _judged(claim: _Claim, rows: list[Row], where: str) -> ClaimRow:
    found = claim.judge(rows)
    if found is None:
        return ClaimRow(claim.text, claim.source, UNKNOWN, "plain", f"needs {claim.needs}", (), valid=True)
    return ClaimRow(
        claim.text,
        claim.source,
        f"holds {where}" if found.holds else f"does not hold {where}",
        "good" if found.holds else "error",
        found.shown,
        tuple(row_anchor(index) for index, _ in found.rows[:6]),
        valid=all(is_valid(row) for _, row in found.rows),
    )


def _named(rows: list[Row], name: str, **wanted: object) -> list[Row]:
    return [
        item
        for item in rows
        if item[1].get("name") == name and all(parameters(item[1]).get(key) == value for key, value in wanted.items())
    ]


def _medians(rows: list[Row]) -> list[tuple[Row, float]]:
    return [(item, median) for item in rows if (median := positive(item[1].get("median"))) is not None]


def _layouts_alike(rows: list[Row]) -> _Judged | None:
    """Rates of one large int8 shape in several layouts and quantisations."""
    by_shape: dict[tuple[int, ...], list[tuple[Row, float]]] = {}
    for item, tops in _medians(_named(rows, "gemm_rate", type=2)):
        shape = tuple(count_of(parameters(item[1]).get(side)) or 0 for side in ("M", "K", "N"))
        if min(shape) >= 512:
            by_shape.setdefault(shape, []).append((item, tops))
    if not by_shape:
        return None
    shape, best = max(by_shape.items(), key=lambda entry: len(entry[1]))
    if len(best) < 2:
        return None
    rates = [tops for _, tops in best]
    spread = max(rates) / min(rates) - 1
    at = " x ".join(str(side) for side in shape)
    return _Judged(
        spread <= 0.05, f"{len(best)} ways at {at} differ by {100 * spread:.2g} %", tuple(i for i, _ in best)
    )


def _cliff(rows: list[Row]) -> _Judged | None:
    for item, fast in _medians(_named(rows, "shape_limit", type=2, dimension="K", limit="fast")):
        times = positive(evidence(item[1]).get("slower_times"))
        if times is not None:
            slow = words(evidence(item[1]).get("ends_at"), 20)
            return _Judged(fast == 8192, f"K = {fast:.0f} is fast, K = {slow} {times:.3g} times slower", (item,))
        return _Judged(False, f"fast up to K = {fast:.0f}, where the search ended", (item,))
    return None


def _side_by_side(rows: list[Row]) -> _Judged | None:
    for item in _named(rows, "core_scaling_fit"):
        share = number_of(item[1].get("median"))
        verdict = words(evidence(item[1]).get("verdict"), 40)
        if share is not None and verdict:
            return _Judged(verdict == "side by side", f"{verdict}, serial share {share:.3g}", (item,))
    return None


def _share_of_rated(rows: list[Row]) -> _Judged | None:
    scaled = [
        (item, share)
        for item in _named(rows, "core_scaling")
        if (share := positive(evidence(item[1]).get("share_of_rated")))
    ]
    if not scaled:
        return None
    item, share = max(scaled, key=lambda entry: entry[1])
    return _Judged(share <= 0.35, f"at most {100 * share:.3g} % of the rated figure", (item,))


def _one_core_a_context(rows: list[Row]) -> _Judged | None:
    found = [
        (item, times)
        for item in _named(rows, "core_mask", contexts=1)
        if parameters(item[1]).get("core_mask") in (3, 7)
        and (times := positive(evidence(item[1]).get("against_mask_1")))
    ]
    if not found:
        return None
    best = max(times for _, times in found)
    return _Judged(
        best <= 1.15, f"masks of several cores give {best:.3g} times mask 1", tuple(item for item, _ in found)
    )


def _no_polling(rows: list[Row]) -> _Judged | None:
    for item in _named(rows, "run_cost", part="cpu_use"):
        share = number_of(item[1].get("median"))
        if share is not None:
            waits = words(evidence(item[1]).get("waits_by"), 20)
            return _Judged(
                share <= 0.5, f"a CPU is busy {100 * share:.2g} % of a run ({waits or 'way unknown'})", (item,)
            )
    return None


def _bus_is_shared(rows: list[Row]) -> _Judged | None:
    for item, share in _medians(_named(rows, "contention", of="cpu_read", beside="npu_stream")):
        return _Judged(share <= 0.95, f"the CPU reads at {100 * share:.3g} % of its own rate", (item,))
    return None


def _int4_alike(rows: list[Row]) -> _Judged | None:
    best: dict[object, tuple[Row, float]] = {}
    for item, tops in _medians(_named(rows, "gemm_ceiling")):
        code = parameters(item[1]).get("type")
        if code in (2, 10) and tops > best.get(code, (item, 0.0))[1]:
            best[code] = (item, tops)
    if len(best) < 2:
        return None
    times = best[10][1] / best[2][1]
    shown = f"int4 reaches {times:.3g} times int8 ({best[10][1]:.3g} and {best[2][1]:.3g} {UNITS['tops']})"
    return _Judged(times <= 1.25, shown, (best[2][0], best[10][0]))


def _native_binds_free(rows: list[Row]) -> _Judged | None:
    times: dict[object, tuple[Row, float]] = {}
    for item, cost in _medians(_named(rows, "run_cost", part="bind")):
        times.setdefault(parameters(item[1]).get("B_layout"), (item, cost))
    if "native" not in times or "norm" not in times:
        return None
    ratio = times["norm"][1] / times["native"][1]
    shown = f"norm {times['norm'][1]:.3g} us, native {times['native'][1]:.3g} us: {ratio:.3g} times"
    return _Judged(ratio >= 5, shown, (times["norm"][0], times["native"][0]))


def _half_of_theory(rows: list[Row]) -> _Judged | None:
    for item, share in _medians(_named(rows, "npu_stream_share")):
        return _Judged(0.4 <= share <= 0.7, f"{100 * share:.3g} % of the limit by theory", (item,))
    return None


_CLAIMS = (
    _Claim(
        "Layout of B and kind of quantisation make no difference to the int8 rate.",
        _CAMPAIGN,
        "gemm_rate of one large shape in two layouts",
        _layouts_alike,
    ),
    _Claim(
        "int8 is fast up to K = 8192 in one context and many times slower above.",
        _CAMPAIGN,
        "shape_limit of K, type 2",
        _cliff,
    ),
    _Claim(
        "rknn_matmul_run takes no lock: contexts on cores of their own run side by side.",
        _CAMPAIGN,
        "core_scaling over two contexts or more",
        _side_by_side,
    ),
    _Claim(
        "A matmul reaches about a third of the rated TOPS; the rated figure is one of convolutions.",
        _CAMPAIGN,
        "core_scaling, and the rated figure of the SoC",
        _share_of_rated,
    ),
    _Claim(
        "One context uses one core, whatever its core mask says.",
        "rknn-toolkit2 issues 7 and 129, RK3588",
        "core_mask with masks 3 or 7",
        _one_core_a_context,
    ),
    _Claim(
        "A run does not poll: the CPU that waits for it is free.",
        _CAMPAIGN,
        "run_cost, part cpu_use",
        _no_polling,
    ),
    _Claim(
        "The memory bus is not free: CPU work on memory slows while the NPU streams weights.",
        _CAMPAIGN,
        "contention of cpu_read beside npu_stream",
        _bus_is_shared,
    ),
    _Claim(
        "int4 multiplies no faster than int8.",
        "notes on the mainline driver, RK3588; denied by unimatrix099's notes on native layout",
        "gemm_ceiling of types 2 and 10",
        _int4_alike,
    ),
    _Claim(
        "Binding a native B costs next to nothing; a norm B is packed anew at each binding.",
        "unimatrix099 and pty819, RK3588",
        "run_cost, part bind, of both layouts",
        _native_binds_free,
    ),
    _Claim(
        "Streaming weights, the NPU reaches about 55 % of the memory's bandwidth by theory.",
        _CAMPAIGN,
        "npu_stream_share, which needs the memory's clock and width",
        _half_of_theory,
    ),
)
