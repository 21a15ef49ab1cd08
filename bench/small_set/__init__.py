# SPDX-License-Identifier: Apache-2.0
"""A small set of the measurements, for many runs in a row: the same programs and conclusions on small shapes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from probes.measurements import cost, gemm, limits, memory, scaling
from probes.measurements.spec import Setting, Spec
from probes.native import NativeProbe

SMALL = "512x2048x2048"


def _plan(*probes: tuple[str, str, tuple[str, ...]]) -> Callable[[Setting], tuple[NativeProbe, ...]]:
    made = tuple(NativeProbe(step, program, arguments, 60.0, f"{step}, small") for step, program, arguments in probes)
    return lambda _setting: made


GEMM = replace(
    gemm.SPEC,
    plan=_plan(("gemm", "mm_peak", ("--shape", SMALL, "--layout", "both", "--quant", "both", "--seconds", "0.12"))),
)
SCALING = replace(scaling.SPEC, plan=_plan(("scaling", "mm_concurrent", ("--shape", SMALL, "--seconds", "0.09"))))
COST = replace(cost.SPEC, plan=_plan(("cost", "mm_cost", ("--part", "fixed", "--quick", "--seconds", "0.03"))))
MASKS = replace(scaling.SPEC, name="masks", plan=_plan(("masks", "mm_masks", ("--seconds", "0.1"))))
GRID = replace(gemm.SPEC, name="grid", plan=_plan(("grid", "mm_grid", ("--quick", "--type", "2", "--seconds", "0.02"))))
LIMITS = replace(limits.SPEC, plan=_plan(("limits", "mm_limits", ("--quick", "--type", "2"))))

FAST: tuple[Spec, ...] = (GEMM, SCALING, COST, memory.LEAKS)
NO_CLIFF = "campaign,k_cliff_f16=0,k_cliff_i8=0,k_cliff_i4=0"
"""The published timing without its cliff, which is a true finding of it."""
