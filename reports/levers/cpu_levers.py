# SPDX-License-Identifier: Apache-2.0
"""Levers of the CPU side: pinning, sets of CPUs, and running beside the NPU."""

from __future__ import annotations

from reports.forecast.board import Board, number
from reports.forecast.quantity import Quantity, exact
from reports.levers.verdict import Verdict, judged, unmeasured


def pinning(board: Board) -> list[Verdict]:
    """The best set of CPUs against all of them with even shares, in arithmetic and in reading memory."""
    campaign = "campaign: A76 alone +18.9 % prompt and +12.8 % decode over the scheduler; all eight are worse than four"
    rows = board.rows("cpu_rate", split="even")
    lever = "pinning to the fastest CPUs"
    if len(rows) < 2:
        return [unmeasured(lever, "cpu_rate of two sets of CPUs or more", campaign=campaign)]
    whole = max(rows, key=lambda row: number((row.get("parameters") or {}).get("threads")) or 0)
    best = max(rows, key=lambda row: number(row.get("median")) or 0)
    names = [str((row.get("parameters") or {}).get("cpus")) for row in (best, whole)]
    if names[0] == names[1]:
        words = f"all CPUs together ({names[1]}) are the fastest set, even shares or not"
        return [
            judged(lever, Quantity(1.0, 1.0, 1.0, (f"cpu_rate, CPUs {names[1]}",)), words, campaign, scope="CPU work")
        ]
    fast, slow = (board.reading(row, f"cpu_rate, CPUs {name}") for row, name in zip((best, whole), names, strict=True))
    return [
        judged(lever, fast / slow, f"CPUs {names[0]} against {names[1]} at even shares", campaign, scope="CPU work")
    ]


def sharing(board: Board) -> list[Verdict]:
    """Handing work out piece by piece against even shares, on all CPUs."""
    rows = board.rows("cpu_rate", split="shared")
    lever = "work handed out piece by piece on all CPUs"
    if not rows:
        return [unmeasured(lever, "cpu_rate with split shared")]
    whole = max(rows, key=lambda row: number((row.get("parameters") or {}).get("threads")) or 0)
    cpus = str((whole.get("parameters") or {}).get("cpus"))
    shared = board.reading(whole, f"cpu_rate, CPUs {cpus}, shared")
    even = board.one(f"cpu_rate, CPUs {cpus}, even", 1.0, "cpu_rate", cpus=cpus, split="even")
    return [judged(lever, shared / even, f"CPUs {cpus}: shares by speed against even ones", scope="CPU work")]


def reading_threads(board: Board) -> list[Verdict]:
    """The set of CPUs that reads memory fastest, against one CPU: what decode on the CPU stands on."""
    sets = board.cpu_sets()
    lever = "more threads for memory"
    if len(sets) < 2:
        return [unmeasured(lever, "cpu_bandwidth read of two sets of CPUs or more")]
    alone = min(sets, key=lambda cpus: board.cpu_bandwidth("read", cpus).value or 0.0)
    gain = board.cpu_bandwidth("read", sets[0]) / board.cpu_bandwidth("read", alone)
    return [judged(lever, gain, f"CPUs {sets[0]} read fastest; slowest {alone}", scope="reading memory")]


def pipelining(board: Board, cpu_share: Quantity | None = None) -> list[Verdict]:
    """Running the CPU's part of a prompt beside the NPU's, from what each keeps of its rate beside the other.

    While both run, CPU work goes at ``c`` of its rate and the NPU at ``n``: of each second of CPU work that is moved
    beside the NPU, 1 - (1 - n) / c seconds are saved. ``cpu_share``: the share of a prompt that the CPU takes alone.
    """
    campaign = "campaign: correct and flat; CPU work was 43 % slower while the NPU streamed"
    lever = "pipelining CPU and NPU"
    c = board.contention("cpu_read", "npu_stream")
    n = board.contention("npu_stream", "cpu_read")
    if c.value is None or n.value is None:
        return [unmeasured(lever, *c.missing, *n.missing, campaign=campaign)]
    kept = [
        1 - max(0.0, 1 - npu) / cpu
        for npu, cpu in ((n.value, c.value), (n.low or 0.0, c.low or c.value), (n.high or 0.0, c.high or c.value))
    ]
    saved = Quantity(kept[0], min(kept), max(kept), (*c.sources, *n.sources))
    words = f"of each second of CPU work beside the NPU {kept[0]:+.2f} s is saved"
    if cpu_share is None or cpu_share.value is None:
        # Without a model the share of the CPU is not known; 1 s of each stands for it.
        return [
            judged(
                lever,
                exact(2.0) / (exact(2.0) + saved * -1.0),
                f"{words}; told for equal shares",
                campaign,
                scope="a prompt",
            )
        ]
    # No more of it than the NPU has time for can be moved beside the NPU.
    moved = min(cpu_share.value, 1 - cpu_share.value)
    left = exact(1.0) + saved * -moved
    return [
        judged(
            lever,
            left.inverse(),
            f"{words}, and the CPU has {cpu_share.value:.0%} of a prompt",
            campaign,
            scope="a prompt",
        )
    ]
