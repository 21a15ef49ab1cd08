# SPDX-License-Identifier: Apache-2.0
"""What a run costs beside the multiplication, and whether M is rounded up."""

from __future__ import annotations

from probes.measurements.spec import BOTH, LONG, Collected, Conclusion, Rows, Setting, Spec, derived, named
from probes.native import NativeProbe
from reports.contract import Measurement

_BUCKETS = (
    "Times of runs at fixed K and N over M. A step is a growth by more than 15 % from M = 2^k to 2^k + 1: the chip "
    "then works on a larger bucket of rows. waste: how much more than the time of M = 2^k the first row above it costs."
)
STEP = 1.15


def _plan(setting: Setting) -> tuple[NativeProbe, ...]:
    return (
        NativeProbe(
            step="cost",
            program="mm_cost",
            arguments=("--seconds", "0.3") if setting.level == LONG else ("--quick", "--seconds", "0.15"),
            deadline_s=60,
            covers="fixed cost of a run, binding, syncing, creating, waiting and waking; each timed context proven",
        ),
    )


def buckets(rows: Rows) -> Measurement | None:
    """The largest step of the time over M just above a power of two; None without such pairs of rows."""
    times = {int(str(row.parameters.get("M"))): row for row in named(rows, "run_time")}
    pairs = [(m, times[m], times[m + 1]) for m in sorted(times) if m > 1 and m & (m - 1) == 0 and m + 1 in times]
    if not pairs:
        return None
    waste = {m: (above.median or 0) / (below.median or 1) - 1 for m, below, above in pairs}
    steps = [m for m, share in waste.items() if 1 + share > STEP]
    return derived(
        "run_buckets",
        [row for _, below, above in pairs for row in (below, above)],
        parameters={"K": pairs[0][1].parameters.get("K"), "N": pairs[0][1].parameters.get("N")},
        unit="share",
        value=max(waste.values()),
        method=_BUCKETS,
        evidence={
            "steps_above_M": list(steps),
            "waste": {str(m): share for m, share in waste.items()},
            "run_us": {str(m): times[m].median for m in sorted(times)},
        },
    )


def conclude(rows: Rows, _setting: Setting) -> Conclusion:
    """Whether M is rounded up to buckets."""
    collected = Collected()
    found = buckets(rows)
    if found is not None:
        collected.rows.append(found)
    return collected.done()


SPEC = Spec(
    name="cost",
    what="Fixed cost of a run; bind by layout; sync, create, destroy; time over M; CPU time of waiting; wake-up.",
    how="mm_cost: single calls timed, medians of batches; the library's share of the timed loop is measured too.",
    spoiled_by="Other load on the CPU, sleeping CPU states, low clocks.",
    levels=BOTH,
    plan=_plan,
    conclude=conclude,
)
