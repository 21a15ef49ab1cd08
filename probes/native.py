# SPDX-License-Identifier: Apache-2.0
"""Runs the C probes, each in a child with a deadline, and turns what they say into events."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from probes.child import ChildResult, run_child
from probes.rows import ProbeOutput, higher_is_better, judged_samples, measurement
from probes.watch import RowWatch, Window
from reports.catalogue import make_finding
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, Finding, Measurement, Step, Verdict
from reports.events import Breadcrumb, Event, Progress

Emit = Callable[[Event], None]


@dataclass(frozen=True)
class NativeProbe:
    """One C probe as a step of the run. ``covers`` is the sentence that a pass is reported with.

    ``calls_library`` is False for the probes of the CPUs, which open no librknnrt.
    """

    step: str
    program: str
    arguments: tuple[str, ...]
    deadline_s: float
    covers: str
    calls_library: bool = True


LIBRARY_CHECK = NativeProbe(
    step="library",
    program="mm_dtypes",
    arguments=("--types", "1,2", "--deadline", "8"),
    deadline_s=20,
    covers="opens, and a small matmul is created, bound, run and compared",
)


@dataclass
class NativeResult:
    """What one C probe brought: how it ended, its rows, and the findings about its end (not about its rows)."""

    verdict: Verdict
    rows: list[Measurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    duration_s: float = 0.0
    reason: str | None = None
    too_hot: str | None = None


def run_native(
    probe: NativeProbe,
    library: Path,
    binaries: Path,
    emit: Emit,
    *,
    env: Mapping[str, str],
    seed: int,
    simulated: bool,
    root: Path = Path("/"),
) -> NativeResult:
    """Run one C probe against ``library``. Emits breadcrumbs and progress; never raises for what the probe does.

    Conditions are read under ``root``. The result is not emitted: the caller may have more to say about it (see
    :func:`emit_result`).
    """
    program = binaries / probe.program
    if not program.is_file():
        finding = make_finding("NPU-D005", f"{probe.program} is not in the build folder")
        return NativeResult(Verdict.COULD_NOT_RUN, [], [finding], 0.0, finding.what)
    output = ProbeOutput()
    windows: list[Window] = []

    def on_line(line: str) -> None:
        record = output.feed(line)
        if record is None:
            return
        if record.get("record") == "step":
            emit(Breadcrumb(probe.step, output.last_step))
        if record.get("record") == "row":
            windows.append(watch.row_ended(judged_samples(record), higher_is_better=higher_is_better(record)))
        if record.get("record") in ("header", "step", "row"):
            total = output.header.get("rows")
            emit(Progress(probe.step, len(output.rows), total if isinstance(total, int) else 0, output.last_step))

    emit(Breadcrumb(probe.step, f"start {probe.program}"))
    emit(Progress(probe.step, 0, 0, ""))
    called = ["--library", str(library), "--seed", str(seed)] if probe.calls_library else []
    argv = [str(program), "--json", *called, *probe.arguments]
    with RowWatch(root, simulated=simulated and probe.calls_library, npu=probe.calls_library) as watch:
        child = run_child(argv, deadline_s=probe.deadline_s, env=env, on_line=on_line)
    method = str(output.header.get("method") or "")
    result = NativeResult(
        verdict=child.verdict,
        rows=[measurement(row, method, window) for row, window in zip(output.rows, windows, strict=True)],
        too_hot=next((window.too_hot for window in windows if window.too_hot), None),
        duration_s=child.duration_s,
    )
    _judge_end(probe, library, child, output, result)
    return result


def _judge_end(
    probe: NativeProbe, library: Path, child: ChildResult, output: ProbeOutput, result: NativeResult
) -> None:
    """Set the verdict, reason and findings that follow from how the child ended."""
    log = _last_line(child.stderr)
    if child.timed_out or child.stuck:
        result.reason = child.sentence
        result.findings.append(
            make_finding("NPU-D004", log or child.sentence, deadline_s=probe.deadline_s, step=output.last_step)
        )
    elif child.signal_name is not None:
        result.reason = child.sentence
        result.findings.append(
            make_finding("NPU-D003", log or child.sentence, signal=child.signal_name, step=output.last_step)
        )
    elif output.error is not None:
        _judge_error(library, output.error, result)
    elif child.start_error is not None or not output.ended or child.exit_code not in (0, 1, EXIT_COULD_NOT_RUN):
        result.verdict = Verdict.COULD_NOT_RUN
        result.reason = child.sentence
        result.findings.append(
            make_finding("NPU-D006", log or child.sentence, probe=probe.program, detail=child.sentence)
        )
    elif child.exit_code == EXIT_FINDINGS:
        result.verdict = Verdict.FAILED
        bad = [row for row in result.rows if row.verdict is Verdict.FAILED]
        result.reason = bad[0].reason if bad and bad[0].reason else f"{probe.program} reports a failure"
    elif child.exit_code == EXIT_COULD_NOT_RUN:
        result.verdict = Verdict.COULD_NOT_RUN
        result.reason = next((row.reason for row in result.rows if row.reason), child.sentence)


def _judge_error(library: Path, error: Mapping[str, Any], result: NativeResult) -> None:
    kind, message = str(error.get("kind")), str(error.get("message"))
    result.verdict = Verdict.COULD_NOT_RUN
    result.reason = message
    if kind == "missing-symbols":
        symbols = str(error.get("symbols") or "rknn_matmul_create")
        result.findings.append(make_finding("NPU-D002", message, path=library, symbols=symbols))
    else:
        result.findings.append(make_finding("NPU-D001", message, path=library))


def emit_result(probe: NativeProbe, result: NativeResult, emit: Emit) -> None:
    """Emit the rows, the findings and the step of one C probe."""
    for row in result.rows:
        emit(row)
    for finding in result.findings:
        emit(finding)
    covered = probe.covers if result.verdict is Verdict.PASSED else None
    reason = None if covered else (result.reason or result.verdict.value)
    emit(Step(probe.step, result.verdict, result.duration_s, covered=covered, reason=reason))


def _last_line(text: str) -> str:
    """The last line of ``text`` that says something: what the library logged before it went."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
