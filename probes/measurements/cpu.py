# SPDX-License-Identifier: Apache-2.0
"""The CPUs: memory bandwidth by threads and cluster, and what big, little and mixed sets do with the same work."""

from __future__ import annotations

from probes.measurements.spec import BOTH, LONG, Conclusion, Rows, Setting, Spec, derived, named
from probes.native import NativeProbe

_SHARE = (
    "Highest read bandwidth of the CPUs over the bandwidth of the memory by theory (bus width times transfer rate)."
)
_PINNING = (
    "Rate of the fastest set of CPUs over that of all CPUs together with even shares: above 1, pinning to that set "
    "pays, because the slowest CPU of a mixed set decides when the work is divided evenly."
)


def _bandwidth_plan(setting: Setting) -> tuple[NativeProbe, ...]:
    return (
        NativeProbe(
            step="bandwidth",
            program="ddr_stream",
            arguments=("--seconds", "0.5" if setting.level == LONG else "0.15"),
            deadline_s=90,
            covers="read, write, copy and triad of the CPUs by threads and cluster, every element compared",
            calls_library=False,
        ),
    )


def _rate_plan(setting: Setting) -> tuple[NativeProbe, ...]:
    return (
        NativeProbe(
            step="cpu",
            program="cpu_rate",
            arguments=("--seconds", "0.3" if setting.level == LONG else "0.15"),
            deadline_s=60,
            covers="rate and clock of the CPUs by cluster and mixed, every result compared",
            calls_library=False,
        ),
    )


def bandwidth_share(rows: Rows, setting: Setting) -> Conclusion:
    """The share of the memory's theoretical bandwidth that the CPUs read."""
    reads = named(rows, "cpu_bandwidth", op="read")
    if not reads or not setting.ddr_gbps or setting.simulated:
        return Conclusion()
    best = max(reads, key=lambda row: row.median or 0)
    share = derived(
        "cpu_bandwidth_share",
        [best],
        parameters={key: best.parameters.get(key) for key in ("cpus", "threads")},
        unit="share",
        value=(best.median or 0) / setting.ddr_gbps,
        method=_SHARE,
        evidence={"theoretical_gbps": setting.ddr_gbps},
    )
    return Conclusion((share,))


def pinning(rows: Rows, _setting: Setting) -> Conclusion:
    """Whether a set of CPUs does more than all of them with even shares, and which."""
    even = named(rows, "cpu_rate", split="even")
    if len(even) < 2:
        return Conclusion()
    whole = max(even, key=lambda row: int(str(row.parameters.get("threads") or 0)))
    best = max(even, key=lambda row: row.median or 0)
    gain = derived(
        "cpu_pinning",
        [whole, best],
        parameters={"cpus": best.parameters.get("cpus"), "against": whole.parameters.get("cpus")},
        unit="ratio",
        value=(best.median or 0) / (whole.median or 1),
        method=_PINNING,
    )
    return Conclusion((gain,))


BANDWIDTH = Spec(
    name="bandwidth",
    what="Memory bandwidth of the CPUs: read, write, copy, triad by thread count and cluster, pinned.",
    how="ddr_stream: arrays beyond the last-level cache, bytes counted as STREAM counts them.",
    spoiled_by="Other programs, a low clock of memory or CPU, heat.",
    levels=BOTH,
    plan=_bandwidth_plan,
    conclude=bandwidth_share,
    calls_library=False,
)
RATE = Spec(
    name="cpu",
    what="Rate of big, little and mixed sets of CPUs at the same work, and the clock of each CPU.",
    how="cpu_rate: int8 dot products out of the first-level cache; a chain of additions, one a cycle, for the clock.",
    spoiled_by="Other programs, idle governors, heat.",
    levels=BOTH,
    plan=_rate_plan,
    conclude=pinning,
    calls_library=False,
)
