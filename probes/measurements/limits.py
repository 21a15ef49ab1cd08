# SPDX-License-Identifier: Apache-2.0
"""Shape limits by type: how far K, N and M go before a shape is refused, wrong or slow, and their alignment."""

from __future__ import annotations

from probes.measurements.spec import BOTH, LONG, Conclusion, Rows, Setting, Spec, evidence_number, named
from probes.native import NativeProbe
from reports.catalogue import make_finding
from reports.contract import Finding, Measurement

MEDIUM_TYPES = (2, 1, 10)
LONG_TYPES = (2, 1, 10, 3, 4, 5, 6, 7, 8, 9, 11)


def _plan(setting: Setting) -> tuple[NativeProbe, ...]:
    whole = setting.level == LONG
    return tuple(
        NativeProbe(
            step=f"limits type {code}",
            program="mm_limits",
            arguments=("--type", str(code), *(() if whole else ("--quick",))),
            deadline_s=180 if whole else 90,
            covers=f"largest K, N and M of matmul type {code} that are accepted, right and fast, found by bisection",
        )
        for code in (LONG_TYPES if whole else MEDIUM_TYPES)
    )


def _end(row: Measurement) -> Finding | None:
    """The finding about what ends a dimension, from its row ``accepted``, ``right`` or ``fast``."""
    values = row.parameters
    limit, dimension, ends_by = values.get("limit"), values.get("dimension"), row.evidence.get("ends_by")
    common = {"dimension": dimension, "limit": int(row.median or 0), "type_name": values.get("type_name")}
    evidence = f"{dimension} = {row.evidence.get('ends_at')}: {row.evidence.get('why') or ends_by}"
    if limit == "accepted" and ends_by == "refused":
        return make_finding("NPU-L050", evidence, **common)
    if limit == "right" and ends_by == "wrong":
        return make_finding("NPU-L051", evidence, **common)
    ratio = evidence_number(row, "slower_times")
    if limit == "fast" and ends_by == "slow" and ratio is not None:
        if dimension == "K":
            k = row.evidence.get("ends_at")
            return make_finding(
                "NPU-P022", evidence, k=k, k_ref=common["limit"], ratio=ratio, type_name=common["type_name"],
                k_limit=common["limit"],
            )  # fmt: skip
        return make_finding("NPU-P028", evidence, ratio=ratio, **common)
    return None


def conclude(rows: Rows, _setting: Setting) -> Conclusion:
    """One finding for each end of a dimension that was found."""
    ends = [_end(row) for row in named(rows, "shape_limit")]
    return Conclusion((), tuple(finding for finding in ends if finding is not None))


SPEC = Spec(
    name="limits",
    what="For each type the largest K, N and M that is accepted, that is right and that is fast; alignments.",
    how="mm_limits: doubled until it ends, then bisected; alignment by trying; a slow shape is tried again to be sure.",
    spoiled_by="Other users of the NPU, and clocks that change while it runs.",
    levels=BOTH,
    plan=_plan,
    conclude=conclude,
)
