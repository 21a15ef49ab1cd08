# SPDX-License-Identifier: Apache-2.0
"""NPU weight streaming at M = 1, and what CPU and NPU take from each other."""

from __future__ import annotations

from probes.measurements.spec import BOTH, LONG, Conclusion, Rows, Setting, Spec, derived, named
from probes.native import NativeProbe

_SHARE = "Highest streaming rate of the NPU over the bandwidth of the memory by theory (bus width times transfer rate)."


def _plan(setting: Setting) -> tuple[NativeProbe, ...]:
    seconds = "1.0" if setting.level == LONG else "0.4"
    return (
        NativeProbe(
            step="stream",
            program="mm_stream",
            arguments=("--part", "stream", "--seconds", seconds),
            deadline_s=60,
            covers="weights streamed at M = 1 by 1 to all cores, every C proven",
        ),
        NativeProbe(
            step="contention",
            program="mm_stream",
            arguments=("--part", "contention", "--seconds", seconds),
            deadline_s=60,
            covers="CPU threads beside the NPU and the reverse, in turns with each alone; every result proven",
        ),
    )


def conclude(rows: Rows, setting: Setting) -> Conclusion:
    """The share of the memory's theoretical bandwidth that the NPU reaches."""
    streams = named(rows, "npu_stream")
    if not streams or not setting.ddr_gbps:
        return Conclusion()
    best = max(streams, key=lambda row: row.median or 0)
    share = derived(
        "npu_stream_share",
        [best],
        parameters={"contexts": best.parameters.get("contexts")},
        unit="share",
        value=(best.median or 0) / setting.ddr_gbps,
        method=_SHARE,
        evidence={"theoretical_gbps": setting.ddr_gbps},
    )
    return Conclusion((share,))


SPEC = Spec(
    name="stream",
    what="Bandwidth of NPU weight streaming on 1 to 3 cores; contention between CPU and NPU, both ways.",
    how="mm_stream: M = 1 with B far above any cache, two sizes to tell the fixed cost apart; then CPU reads and CPU "
    "arithmetic alone, the NPU alone, and both, in turns.",
    spoiled_by="Other load, a memory clock that moves, fewer CPUs than threads.",
    levels=BOTH,
    plan=_plan,
    conclude=conclude,
)
