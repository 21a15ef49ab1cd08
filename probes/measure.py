# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run, in order: first whether the library works at all, then the C probes one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from probes.native import LIBRARY_CHECK, MEDIUM, NativeProbe, NativeResult, emit_result, run_native
from probes.rows import row_findings
from reports.catalogue import make_finding
from reports.contract import Finding, Measurement, Step, Verdict
from reports.events import Event

Emit = Callable[[Event], None]


def measure(
    library: Path,
    binaries: Path,
    emit: Emit,
    *,
    env: Mapping[str, str],
    seed: int,
    simulated: bool,
    probes: tuple[NativeProbe, ...] = MEDIUM,
) -> None:
    """Check the library, then run ``probes`` against it. A library that fails the check costs one finding, not many."""
    check = run_native(LIBRARY_CHECK, library, binaries, emit, env=env, seed=seed, simulated=simulated)
    usable = _judge_check(check)
    check.rows.clear()  # the step "types" brings the same rows, for all types
    emit_result(LIBRARY_CHECK, check, emit)
    if not usable:
        for probe in probes:
            emit(Step(probe.step, Verdict.SKIPPED, 0.0, reason="the library did not pass its check"))
        return
    rows: list[Measurement] = []
    too_hot: str | None = None
    for probe in probes:
        if too_hot:
            emit(Step(probe.step, Verdict.SKIPPED, 0.0, reason=too_hot))
            continue
        result = run_native(probe, library, binaries, emit, env=env, seed=seed, simulated=simulated)
        emit_result(probe, result, emit)
        rows += result.rows
        # Heat of a machine that only runs the mock is no reason to stop: the mock does not warm an NPU.
        too_hot = None if simulated else result.too_hot
    for finding in row_findings(rows):
        emit(finding)


def _judge_check(result: NativeResult) -> bool:
    """Whether to go on after the library check. Sets its verdict, and the one finding that says what is wrong."""
    if result.findings or not result.rows:
        return False
    verdicts = {row.verdict for row in result.rows}
    if Verdict.PASSED in verdicts:
        result.verdict, result.reason = Verdict.PASSED, None
        return True
    if Verdict.FAILED in verdicts:
        # Wrong numbers are for the measurements to show, row by row.
        result.verdict = Verdict.FAILED
        result.reason = next(row.reason for row in result.rows if row.verdict is Verdict.FAILED)
        return True
    row = next((row for row in result.rows if row.verdict is not Verdict.UNSUPPORTED), result.rows[0])
    result.verdict, result.reason = row.verdict, row.reason
    result.findings.append(_check_finding(row))
    return False


def _check_finding(row: Measurement) -> Finding:
    evidence = str(row.evidence.get("log") or row.reason or "")
    step = str(row.evidence.get("step") or "rknn_matmul_create")
    if row.verdict is Verdict.CRASHED:
        return make_finding("NPU-D003", evidence, signal=row.evidence.get("signal") or "a signal", step=step)
    if row.verdict is Verdict.TIMED_OUT:
        return make_finding("NPU-D004", evidence, deadline_s=float(LIBRARY_CHECK.arguments[-1]), step=step)
    return make_finding("NPU-D007", evidence, detail=row.reason or "no reason was given")
