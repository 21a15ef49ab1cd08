# SPDX-License-Identifier: Apache-2.0
"""One run from start to report: facts, findings, then the measurements that the board and the level allow."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c_probes.library_file import describe_library
from c_probes.lock import Busy, LockError, NpuLock, lock_path
from probes.facts import FactSheet, collect
from probes.facts.soc_table import SOCS
from probes.findings import judge as judge_facts
from probes.library_choice import BoardView, Choice, choose_library, installed_library, mock_environment
from probes.measure import measure
from probes.measurements import Setting, select
from probes.options import CHECKOUT, Options
from probes.system import System
from reports.build import ReportSink, could_not_run
from reports.catalogue import make_finding
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_FINDINGS, EXIT_OK, Finding, Severity, Step, Verdict
from reports.events import Emitter, Event, RunEnded, RunStarted
from reports.version import VERSION

BINARIES = CHECKOUT / "build" / "bin"
MOCK_LIBRARY = CHECKOUT / "build" / "mock" / "librknnrt.so"


class Interrupted(BaseException):
    """The run was told to stop (Ctrl-C or SIGTERM). Not an Exception: nothing on the way may swallow it."""


@dataclass
class Run:
    """State of one run: what it was asked, where its events go, and what has come so far."""

    options: Options
    emitter: Emitter
    report: ReportSink
    cut_short: str | None = None

    def emit(self, event: Event) -> None:
        self.emitter.emit(event)


def execute(run: Run) -> int:
    """Do the whole run; returns the exit code. Always ends with the RunEnded event, however it went."""
    options = run.options
    system = System(options.root)
    sheet, choice = _look(run, system)
    code = EXIT_COULD_NOT_RUN
    try:
        if run.cut_short:
            run.emit(make_finding("NPU-S003", run.cut_short, step=run.cut_short))
        for finding in judge_facts(sheet):
            run.emit(finding)
        if options.level != "quick":
            _active(run, sheet, choice)
        code = exit_code(run.report.findings, run.report.steps)
    finally:
        run.emit(RunEnded(code))
    return code


def exit_code(findings: list[Finding], steps: list[Step]) -> int:
    """1 where a finding is an error; else 3 where something was to be measured and nothing could; else 0."""
    if any(finding.severity is Severity.ERROR for finding in findings):
        return EXIT_FINDINGS
    return EXIT_COULD_NOT_RUN if could_not_run([s for s in steps if s.name != "facts"]) else EXIT_OK


def _look(run: Run, system: System) -> tuple[FactSheet, Choice]:
    """Collect the facts, decide on a library, and send the run's header before anything else.

    The header says whether the run is simulated, which depends on facts; so facts are held back until it is sent.
    """
    held: list[Event] = []
    started = time.monotonic()
    sheet = collect(system, held.append)
    took = time.monotonic() - started
    choice = _choose(run.options, sheet)
    run.emit(RunStarted(_header(run.options, choice)))
    for event in held:
        run.emit(event)
    known = sum(1 for fact in sheet.values() if fact.value is not None)
    covered = f"{known} of {len(sheet)} facts are known; each unknown one has its reason in the report"
    run.emit(Step("facts", Verdict.PASSED, took, covered=covered))
    return sheet, choice


def _choose(options: Options, sheet: FactSheet) -> Choice:
    if options.level == "quick":
        return Choice(None, False, False, None, "level quick calls no library")
    if options.root != Path("/"):
        return Choice(None, False, False, None, "--root is a picture of a machine; nothing can be measured on it")
    board = BoardView(
        is_rockchip=sheet.flag("soc.is_rockchip"),
        stack=sheet.text("npu.stack"),
        device_accessible=sheet.flag("npu.device_accessible"),
    )
    installed, installed_is_mock = installed_library(sheet.rows("libraries"))
    return choose_library(
        board,
        named=options.library,
        named_is_mock=options.library is not None and describe_library(options.library).is_mock,
        force_mock=options.mock,
        installed=installed,
        installed_is_mock=installed_is_mock,
        mock_library=MOCK_LIBRARY,
        env=os.environ,
    )


def _active(run: Run, sheet: FactSheet, choice: Choice) -> None:
    """Measure, if there is a library to measure and nobody else holds the NPU."""
    if choice.path is None:
        if choice.finding_code == "NPU-D008":
            run.emit(make_finding("NPU-D008", choice.reason or ""))
        elif choice.finding_code == "NPU-D005":
            run.emit(make_finding("NPU-D005", choice.reason or ""))
        run.emit(_not_measured(Verdict.COULD_NOT_RUN, choice.reason or "no library"))
        return
    holders = sheet.rows("tenants")
    if holders and not choice.mock:
        names = ", ".join(f"{holder.get('name')} (pid {holder.get('pid')})" for holder in holders)
        # The finding that names them comes from the facts.
        run.emit(_not_measured(Verdict.COULD_NOT_RUN, f"the NPU is in use by {names}"))
        return
    try:
        with NpuLock(lock_path()):
            env = mock_environment(os.environ) if choice.mock else dict(os.environ)
            options = run.options
            measure(
                choice.path,
                BINARIES,
                run.emit,
                env=env,
                seed=options.seed,
                simulated=choice.simulated,
                specs=select(options.level, options.only, allow_risky=options.allow_risky),
                setting=_setting(options, sheet, choice, env),
                known=frozenset(finding.code for finding in run.report.findings),
            )
    except Busy as busy:
        run.emit(make_finding("NPU-S002", str(busy), holder=busy.holder))
        run.emit(_not_measured(Verdict.COULD_NOT_RUN, str(busy)))
    except LockError as error:
        run.emit(_not_measured(Verdict.COULD_NOT_RUN, str(error)))


def _setting(options: Options, sheet: FactSheet, choice: Choice, env: Mapping[str, str]) -> Setting:
    """What the measurements should know about the chip. The mock's persona stands for the chip of that name."""
    if not choice.mock:
        return Setting(
            level=options.level,
            simulated=choice.simulated,
            cores=_whole(sheet.number("npu.cores")),
            rated_tops=sheet.number("npu.rated_tops"),
            ddr_gbps=sheet.number("ddr.theoretical_gbps"),
        )
    soc = SOCS.get(env["RKNN_MOCK_PERSONA"].upper())
    return Setting(
        level=options.level,
        simulated=choice.simulated,
        cores=soc.cores if soc else None,
        rated_tops=soc.rated_tops if soc else None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _not_measured(verdict: Verdict, reason: str) -> Step:
    return Step("measurements", verdict, 0.0, reason=reason)


def _header(options: Options, choice: Choice) -> dict[str, Any]:
    library = None
    if choice.path is not None:
        library = _described(choice.path)
    simulation = None
    if choice.simulated:
        env = mock_environment(os.environ)
        simulation = {
            "persona": env["RKNN_MOCK_PERSONA"] if choice.mock else "not a mock of this kit",
            "timing": env["RKNN_MOCK_TIMING"] if choice.mock else None,
            "note": choice.note,
        }
    return {
        "simulated": choice.simulated,
        "simulation": simulation,
        "tool": {"name": "rknpu-kit", "version": VERSION, "git_commit": git_commit(CHECKOUT)},
        "run": {"level": options.level, "seed": options.seed, "library": library},
    }


def _described(path: Path) -> dict[str, Any]:
    """Path, version, sha256 and kind of the library that is called, read from its file without loading it."""
    found = describe_library(path)
    return {"path": str(path), "version": found.version_text, "sha256": found.sha256, "mock": found.is_mock}


def git_commit(checkout: Path) -> str | None:
    """The commit of the checkout, with ``+`` where files differ from it; None outside of one or without git.

    Both commands only read: ``git describe --dirty`` would refresh, and so write, the index.
    """
    git = ["git", "-C", str(checkout)]
    try:
        head = subprocess.run(
            [*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, timeout=10, check=True
        )
        same = subprocess.run([*git, "diff-index", "--quiet", "HEAD"], capture_output=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return head.stdout.strip() + ("+" if same.returncode else "") or None
