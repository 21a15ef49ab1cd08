# SPDX-License-Identifier: Apache-2.0
"""Minutes of full load on all cores: does the rate hold, do the results stay right?"""

from __future__ import annotations

from probes.measurements.spec import ONLY_LONG, Conclusion, Rows, Setting, Spec, evidence_number, named
from probes.native import NativeProbe
from reports.catalogue import make_finding

SOAK_S = 300
HELD = 0.9
"""Share of the first quarter's rate that the last quarter must keep."""


def _plan(_setting: Setting) -> tuple[NativeProbe, ...]:
    return (
        NativeProbe(
            step="soak",
            program="mm_soak",
            arguments=("--seconds", str(SOAK_S)),
            deadline_s=SOAK_S + 120,
            covers=f"all cores busy for {SOAK_S} s with a heartbeat; results compared throughout",
        ),
    )


def conclude(rows: Rows, _setting: Setting) -> Conclusion:
    """A rate that falls while it is held."""
    for row in named(rows, "soak"):
        drift = evidence_number(row, "drift")
        if drift is not None and drift < HELD:
            evidence = f"last quarter of the soak at {drift:.0%} of the first"
            return Conclusion((), (make_finding("NPU-P025", evidence, fall=100 * (1 - drift), row="all cores, soak"),))
    return Conclusion()


SPEC = Spec(
    name="soak",
    what="Whether rate and results hold over minutes of full load.",
    how="mm_soak: one context per core, a heartbeat every five seconds, all of every C compared sixty times.",
    spoiled_by="Other users of the NPU. Heat is what it looks for.",
    levels=ONLY_LONG,
    plan=_plan,
    conclude=conclude,
)
