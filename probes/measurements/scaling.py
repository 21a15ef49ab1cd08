# SPDX-License-Identifier: Apache-2.0
"""What the cores reach together, Amdahl's serial share, and whether core masks do what they say."""

from __future__ import annotations

from collections.abc import Mapping

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
from reports.contract import Finding, Measurement

ONE_CORE = 1.2
"""Below this multiple of mask 1 a context runs on one core: overlapping call overhead alone gives no more
(rknn-toolkit2 issue 7: masks that fall back to one core return success)."""

_AMDAHL = (
    "Amdahl's law fitted to the rates of 1 to n contexts on separate cores: speed-up(n) = 1 / (s + (1 - s) / n), least "
    "squares over n. s = 0: the cores do not disturb each other; s = 1: they work one after the other."
)


def _plan(setting: Setting) -> tuple[NativeProbe, ...]:
    seconds = "1.0" if setting.level == LONG else "0.4"
    rated = ("--rated-tops", f"{setting.rated_tops:g}") if setting.rated_tops else ()
    return (
        NativeProbe(
            step="scaling",
            program="mm_concurrent",
            arguments=(*rated, "--seconds", seconds, *(() if setting.level == LONG else ("--shape", "1024x4096x4096"))),
            deadline_s=90,
            covers="1 to 3 contexts on separate cores at once, every element of every C proven",
        ),
        NativeProbe(
            step="masks",
            program="mm_masks",
            arguments=("--seconds", seconds if setting.level == LONG else "0.2"),
            deadline_s=60,
            covers="core masks 1, 2, 4, 3, 7 and 0 tried; what each does is told by its rate, every C proven",
        ),
    )


def serial_share(speedup: Mapping[int, float]) -> float | None:
    """Amdahl's s from {contexts: speed-up over one}, by least squares over a fine grid; None without two contexts.

    The grid reaches below 0: contexts that speed each other up would show there instead of being hidden.
    """
    points = {n: value for n, value in speedup.items() if n > 1 and value > 0}
    if not points:
        return None
    grid = [step / 10000 for step in range(-2000, 10001)]

    def error(share: float) -> float:
        return sum((1 / (share + (1 - share) / n) - value) ** 2 for n, value in points.items())

    return min((share for share in grid if all(share + (1 - share) / n > 0 for n in points)), key=error)


def _amdahl(rows: Rows) -> list[Measurement]:
    scaling = named(rows, "core_scaling")
    rates = {int(str(row.parameters.get("contexts"))): row.median or 0.0 for row in scaling}
    one = rates.get(1)
    if not one or len(rates) < 2:
        return []
    speedup = {n: rate / one for n, rate in rates.items()}
    share = serial_share(speedup)
    most = max(speedup)
    verdict = "one after the other" if speedup[most] <= ONE_CORE else "side by side"
    return [
        derived(
            "core_scaling_fit",
            scaling,
            parameters={"contexts": most},
            unit="share",
            value=share,
            method=_AMDAHL,
            evidence={"speedup": {str(n): value for n, value in sorted(speedup.items())}, "verdict": verdict},
        )
    ]


def _mask_findings(rows: Rows) -> list[Finding]:
    base = named(rows, "core_mask", core_mask=1, contexts=1)
    if not base or not base[0].median:
        return []
    found = []
    for row in named(rows, "core_mask", contexts=1):
        if not (undisturbed(row) and undisturbed(base[0])):
            continue
        mask = row.parameters.get("core_mask")
        ratio = (row.median or 0) / base[0].median
        accepted = evidence_number(row, "core_mask_code") == 0
        if mask in (3, 7) and accepted and ratio < ONE_CORE:
            evidence = f"set_core_mask({mask}) returned 0; {row.median:.3g} against {base[0].median:.3g} TOPS on mask 1"
            found.append(make_finding("NPU-P023", evidence, mask=mask, ratio=ratio))
    return found


def conclude(rows: Rows, _setting: Setting) -> Conclusion:
    """The Amdahl fit, and masks that are accepted and ignored."""
    collected = Collected()
    collected.rows += _amdahl(rows)
    collected.findings += _mask_findings(rows)
    return collected.done()


SPEC = Spec(
    name="scaling",
    what="What 1, 2 and 3 contexts on separate cores reach together, and whether core masks do what they say.",
    how="mm_concurrent: work done while all contexts run. mm_masks: the rate on each mask beside that of mask 1, and "
    "the driver's load file where it can be read.",
    spoiled_by="Low clocks, heat, fewer free CPU cores than contexts, and other users of the NPU or the memory.",
    levels=BOTH,
    plan=_plan,
    conclude=conclude,
)
