# SPDX-License-Identifier: Apache-2.0
"""The measurements of a run, in order: first whether the library works at all, then the C probes one by one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from probes.measurements import MEDIUM, Setting, Spec, select
from probes.native import LIBRARY_CHECK, NativeProbe, NativeResult, emit_result, run_native
from probes.row_conditions import condition_findings
from probes.rows import row_findings
from reports.catalogue import make_finding
from reports.contract import Checked, Finding, Measurement, Step, Verdict
from reports.events import Event

Emit = Callable[[Event], None]

CHECK_NOMINAL_S = 1.0
MOST_PACE = 6.0
_TIME = re.compile(r"\[[0-9:.]+\]")
"""The time of a line that the library logged: the same line at another time is no other finding."""


def measure(
    library: Path,
    binaries: Path,
    emit: Emit,
    *,
    env: Mapping[str, str],
    seed: int,
    simulated: bool,
    specs: Sequence[Spec] | None = None,
    setting: Setting | None = None,
    root: Path = Path("/"),
    known: frozenset[str] = frozenset(),
) -> None:
    """Check the library, then run the measurements. A library that fails the check costs one finding, not many.

    ``root`` is where conditions are read. ``known``: codes that the facts raised already; conditions are not told
    twice. A measurement that does not call the library runs whatever became of it.
    """
    setting = setting or Setting(MEDIUM, simulated)
    specs = select(setting.level) if specs is None else specs

    def run(probe: NativeProbe) -> NativeResult:
        return run_native(probe, library, binaries, emit, env=env, seed=seed, simulated=simulated, root=root)

    usable, pace = True, 1.0
    if any(spec.calls_library for spec in specs):
        check = run(LIBRARY_CHECK)
        usable = _judge_check(check)
        check.rows.clear()  # the step "types" brings the same rows, for all types
        emit_result(LIBRARY_CHECK, check, emit)
        pace = pace_of(check.duration_s)
    rows: list[Measurement] = []
    found: list[Finding] = []
    too_hot: str | None = None
    for spec in specs:
        mine: list[Measurement] = []
        for probe in spec.plan(setting):
            if too_hot or (spec.calls_library and not usable):
                reason = too_hot or "the library did not pass its check"
                emit(Step(probe.step, Verdict.SKIPPED, 0.0, reason=reason))
                continue
            result = run(replace(probe, deadline_s=probe.deadline_s * pace))
            emit_result(probe, result, emit)
            mine += result.rows
            # Heat of a machine that only runs the mock is no reason to stop: the mock does not warm an NPU.
            too_hot = None if simulated else result.too_hot
        conclusion = spec.conclude(mine, setting)
        for row in conclusion.rows:
            emit(row)
        found += conclusion.findings
        rows += mine
    conditions = [finding for finding in condition_findings(rows) if finding.code not in known]
    for finding in without_repeats([*row_findings(rows), *found, *conditions]):
        emit(finding)


def pace_of(check_s: float) -> float:
    """By how much deadlines grow on a machine whose library check took ``check_s`` seconds: 1 to 6.

    The deadlines in the table hold for a board on which the check takes a second at most.
    """
    return min(MOST_PACE, max(1.0, check_s / CHECK_NOMINAL_S))


def without_repeats(findings: Sequence[Finding]) -> list[Finding]:
    """One finding for each thing: the cliff of a type that the bisection places exactly is not told twice."""
    exact = {_type_of(finding) for finding in findings if finding.code == "NPU-P022" and _bisected(finding)}
    kept: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        if finding.code == "NPU-P022" and not _bisected(finding) and _type_of(finding) in exact:
            continue
        kept.setdefault((finding.code, _TIME.sub("", finding.what)), finding)
    return list(kept.values())


def _bisected(finding: Finding) -> bool:
    return finding.evidence.startswith("K = ")


def _type_of(finding: Finding) -> str:
    return finding.what.rpartition("(type ")[2]


def _judge_check(result: NativeResult) -> bool:
    """Whether to go on after the library check. Sets its verdict, and the one finding that says what is wrong."""
    if result.findings or not result.rows:
        return False
    verdicts = {row.verdict for row in result.rows}
    if Verdict.PASSED in verdicts:
        result.verdict, result.reason = Verdict.PASSED, None
        return True
    failed = [row for row in result.rows if row.verdict is Verdict.FAILED]
    if failed:
        result.verdict, result.reason = Verdict.FAILED, failed[0].reason
        if any(row.checked is not Checked.NOT for row in failed):
            return True  # wrong numbers are for the measurements to show, row by row
        reason = failed[0].reason or "no reason was given"
        result.findings.append(make_finding("NPU-D011", reason, detail=reason))
        return False
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
