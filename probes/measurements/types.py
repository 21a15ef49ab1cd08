# SPDX-License-Identifier: Apache-2.0
"""Which matmul types the library takes, and whether what it returns for them is right."""

from __future__ import annotations

from probes.measurements.spec import BOTH, Setting, Spec
from probes.native import NativeProbe


def _plan(_setting: Setting) -> tuple[NativeProbe, ...]:
    return (
        NativeProbe(
            step="types",
            program="mm_dtypes",
            arguments=("--deadline", "10"),
            deadline_s=60,
            covers="matmul type codes 0 to 20 tried, each in its own process; every accepted one compared",
        ),
    )


SPEC = Spec(
    name="types",
    what="Which matmul type codes the library accepts, and whether their results are right.",
    how="mm_dtypes: codes 0 to 20, each in a child of its own, two shapes, both layouts, every element compared.",
    spoiled_by="Nothing but another user of the NPU: it measures no speed.",
    levels=BOTH,
    plan=_plan,
)
