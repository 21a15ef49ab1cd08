# SPDX-License-Identifier: Apache-2.0
"""Leaks of descriptors and memory; and, on request, how many contexts and bytes there are and whether domains work."""

from __future__ import annotations

from probes.measurements.spec import BOTH, ONLY_LONG, Collected, Conclusion, Rows, Setting, Spec, evidence_number
from probes.native import NativeProbe
from reports.catalogue import make_finding
from reports.contract import Verdict

LEAK_FDS = 0.01
LEAK_BYTES = {"run": 1024.0}
LEAK_BYTES_CYCLE = 8192.0
"""Per context made and destroyed; the slope is a median over all pairs: an allocator that grows once has none."""


def _step(part: str, covers: str, deadline_s: float) -> NativeProbe:
    return NativeProbe(
        step=part if part == "leaks" else f"memory {part}",
        program="mm_memory",
        arguments=("--part", part),
        deadline_s=deadline_s,
        covers=covers,
    )


def _leaks_plan(_setting: Setting) -> tuple[NativeProbe, ...]:
    return (_step("leaks", "descriptors and memory over contexts, buffers and runs; results proven", 30),)


def leaks(rows: Rows, _setting: Setting) -> Conclusion:
    """Slopes that are not zero."""
    collected = Collected()
    for row in rows:
        if row.name != "npu_memory" or row.median is None:
            continue
        over, part = str(row.parameters.get("over")), row.parameters.get("part")
        cycles = evidence_number(row, "cycles") or 0
        grown = f"{row.evidence.get('at_start')} to {row.evidence.get('at_end')} {row.unit} in {cycles:.0f} cycles"
        if part == "descriptors" and row.median > LEAK_FDS:
            collected.findings.append(make_finding("NPU-R040", grown, over=over, slope=row.median))
        if part == "resident" and row.median > LEAK_BYTES.get(over, LEAK_BYTES_CYCLE):
            collected.findings.append(make_finding("NPU-R041", grown, over=over, slope=row.median))
    return collected.done()


def limits(rows: Rows, _setting: Setting) -> Conclusion:
    """Handles that do not come back, and a domain that gives wrong results."""
    collected = Collected()
    for row in rows:
        part = row.parameters.get("part")
        if row.name != "npu_memory":
            continue
        if part == "contexts" and row.evidence.get("works_afterwards") is False:
            collected.findings.append(
                make_finding("NPU-R042", row.reason or "", detail=row.reason or "no reason given")
            )
        if part == "domain_switch" and row.verdict in (Verdict.UNSUPPORTED, Verdict.COULD_NOT_RUN):
            collected.findings.append(
                make_finding("NPU-R043", row.reason or "", detail=row.reason or "no reason given")
            )
    return collected.done()


LEAKS = Spec(
    name="leaks",
    what="Descriptors and memory that the library keeps over contexts, buffers and runs.",
    how="mm_memory: slope over 64 cycles and 512 runs, warm-up dropped; nothing grows in a sound library.",
    spoiled_by="Nothing but a library that allocates late.",
    levels=BOTH,
    plan=_leaks_plan,
    conclude=leaks,
)


def _risky(part: str, what: str, how: str, covers: str) -> Spec:
    return Spec(
        name=part,
        what=what,
        how=how,
        spoiled_by="Other users of the NPU or of memory. Drivers before 0.9.8 have hung here.",
        levels=ONLY_LONG,
        plan=lambda _setting: (_step(part, covers, 60),),
        conclude=limits,
        risky=True,
    )


RISKY = (
    _risky(
        "contexts",
        "How many contexts can be alive at once, and the descriptors each takes.",
        "mm_memory: created until one is refused; then all destroyed, and a new one must work.",
        "contexts created until one was refused; a new one works afterwards",
    ),
    _risky(
        "ceiling",
        "How much can be allocated in IOMMU domains 0 and 1.",
        "mm_memory: blocks of 64 MiB until one is refused, early stop at half of the available memory.",
        "memory allocated in steps in two IOMMU domains; a run is right afterwards",
    ),
    _risky(
        "domains",
        "Whether a context in IOMMU domain 1 really works, and what switching between domains costs.",
        "mm_memory: run, compared, and run in turns with a context in domain 0.",
        "a context in IOMMU domain 1 runs right, alone and in turns with domain 0",
    ),
)
