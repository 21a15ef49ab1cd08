# SPDX-License-Identifier: Apache-2.0
"""``python -m probes``: one run, or ``python -m probes capture`` to save what the probe reads for somebody else."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from probes.measurements import listing
from probes.options import Options, UsageError, parse, usage_failure
from probes.run import Interrupted, Run, execute
from reports.build import ReportSink, dumps
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK
from reports.event_log import EventLogSink, interrupted_step
from reports.events import Emitter, Sink
from reports.files import OutputError, check_output, write_text
from reports.paste import paste
from reports.progress import ProgressSink
from reports.redact import Names, names_of, redact
from reports.terminal import render
from reports.text import colour_wanted

LOG_SUFFIX = ".events.jsonl"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (0 nothing wrong, 1 errors found, 2 usage, 3 could not run)."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments[:1] == ["capture"]:
            from probes.capture_command import capture_command  # noqa: PLC0415  only this command needs it

            return capture_command(arguments[1:])
        options = parse(arguments)
        if options.list_only:
            print(listing(), end="")
            return EXIT_OK
        return _probe(options)
    except (UsageError, OutputError) as error:
        return usage_failure(error)
    except BrokenPipeError:
        # The reader of our output went away (a pager was left); the files are written already.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_COULD_NOT_RUN


def _probe(options: Options) -> int:
    report_file = _report_file(options)
    report = ReportSink(full=options.full)
    sinks: list[Sink] = [report, ProgressSink(sys.stderr)]
    cut_short = None
    names = names_of(options.root)
    if report_file is not None:
        cut_short = _cut_short(report_file)
        check_output(report_file, force=options.force)
        log_file = report_file.with_name(report_file.stem + LOG_SUFFIX)
        sinks.append(EventLogSink(log_file, force=options.force, full=options.full, names=names))
    emitter = Emitter(sinks)
    try:
        code = _guarded(Run(options, emitter, report, cut_short))
    finally:
        emitter.close()
    document = report.report() if options.full else redact(report.report(), names)
    if report_file is not None:
        write_text(report_file, dumps(document), force=options.force)
    _show(options, document, report_file, names)
    return code


def _guarded(run: Run) -> int:
    """Execute the run; Ctrl-C and SIGTERM end it in order, with what is known by then."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted(signal.Signals(number).name)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        return execute(run)
    except Interrupted as interrupted:
        print(f"rknpu-probe: stopped by {interrupted}; the report holds what was known by then", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _report_file(options: Options) -> Path | None:
    if options.output is None:
        return None
    if options.output.suffix == ".json":
        return options.output
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return options.output / f"report-{stamp}-{os.getpid()}.json"


def _cut_short(report_file: Path) -> str | None:
    """The step at which the newest earlier run in the same folder was cut short, if it was."""
    try:
        logs = sorted(report_file.parent.glob("*" + LOG_SUFFIX), key=lambda path: path.stat().st_mtime)
        if logs and logs[-1].stat().st_size == 0:
            return "before its first step, while facts were read"
        return interrupted_step(logs[-1]) if logs else None
    except OSError:
        return None


def _show(options: Options, document: dict[str, Any], report_file: Path | None, names: Names) -> None:
    if options.as_json:
        print(json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False))
        return
    if options.paste:
        print(paste(document, names), end="")
        return
    print(render(document, width=_width(), colour=colour_wanted(sys.stdout)), end="")
    if report_file is not None:
        log_file = report_file.with_name(report_file.stem + LOG_SUFFIX)
        print(f"\nReport: {_shown(report_file)}\nEvents: {_shown(log_file)}")


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _width() -> int:
    """Columns of the terminal, within what reads well; 100 where there is none."""
    try:
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        return 100
    return max(60, min(columns, 120))


if __name__ == "__main__":
    sys.exit(main())
