# SPDX-License-Identifier: Apache-2.0
"""The event log survives what ends the run, and says where that was."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from reports.event_log import EventLogSink, interrupted_step, read_events
from reports.events import Breadcrumb, Emitter, Event, Progress, RunEnded, RunStarted
from reports.files import OutputError


def write(path: Path, events: list[Event], *, full: bool = False) -> None:
    emitter = Emitter([EventLogSink(path, full=full)])
    for event in events:
        emitter.emit(event)
    emitter.close()


def test_every_event_but_progress_is_a_line_in_order(tmp_path: Path, events: list[Event]) -> None:
    log = tmp_path / "events.jsonl"
    write(log, [*events, Progress("gemm", 1, 2)])
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    kinds = [line["event"] for line in lines]
    assert kinds[0] == "run-started"
    assert kinds[-1] == "run-ended"
    assert "progress" not in kinds
    assert len(lines) == len(events)
    assert all(a["at"] <= b["at"] for a, b in itertools.pairwise(lines))


def test_personal_data_stays_out_of_the_log_unless_asked_for(tmp_path: Path, events: list[Event]) -> None:
    write(tmp_path / "a", events)
    write(tmp_path / "b", events, full=True)
    assert "0123456789abcdef" not in (tmp_path / "a").read_text()
    assert "0123456789abcdef" in (tmp_path / "b").read_text()


def test_home_folders_in_any_event_are_hidden_unless_asked_for(tmp_path: Path) -> None:
    events: list[Event] = [RunStarted({}), Breadcrumb("gemm", "load /home/somebody/librknnrt.so")]
    write(tmp_path / "a", events)
    write(tmp_path / "b", events, full=True)
    assert "somebody" not in (tmp_path / "a").read_text()
    assert "/home/somebody/librknnrt.so" in (tmp_path / "b").read_text()


def test_a_run_that_ended_names_no_step(tmp_path: Path, events: list[Event]) -> None:
    write(tmp_path / "log", events)
    assert interrupted_step(tmp_path / "log") is None


def test_a_run_cut_short_names_its_last_breadcrumb(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, [RunStarted({}), Breadcrumb("gemm", "create type=2"), Breadcrumb("gemm", "run type=2")])
    assert interrupted_step(log) == "gemm: run type=2"


def test_a_line_cut_off_and_garbage_cost_themselves_only(tmp_path: Path) -> None:
    log = tmp_path / "log"
    write(log, [RunStarted({}), Breadcrumb("gemm", "run")])
    with log.open("ab") as stream:
        stream.write(b"\xff\xfe garbage\n[1, 2]\n" + b"[" * 100_000 + b"\n" + b'{"event": "run-en')
    assert len(list(read_events(log))) == 2
    assert interrupted_step(log) == "gemm: run"


def test_an_empty_log_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"")
    assert interrupted_step(tmp_path / "log") is None


def test_a_log_that_exists_is_not_written_over(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("precious")
    with pytest.raises(OutputError, match="exists already"):
        EventLogSink(log)
    assert log.read_text() == "precious"
    EventLogSink(log, force=True).close()
    assert log.read_text() == ""


def test_a_log_that_cannot_be_made_says_so(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write"):
        EventLogSink(tmp_path / "no" / "such" / "folder")


KILLED = """
import os, signal, sys
from pathlib import Path
from reports.event_log import EventLogSink
from reports.events import Breadcrumb, Emitter, RunStarted
emitter = Emitter([EventLogSink(Path(sys.argv[1]))])
emitter.emit(RunStarted({}))
emitter.emit(Breadcrumb("gemm", "the last thing it did"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_was_emitted_before_a_kill_is_on_the_disk(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run([sys.executable, "-c", KILLED, str(log)], env={**os.environ, "PYTHONPATH": "."}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert interrupted_step(log) == "gemm: the last thing it did"


def test_ended_event_without_a_start_is_harmless(tmp_path: Path) -> None:
    write(tmp_path / "log", [RunEnded(0)])
    assert interrupted_step(tmp_path / "log") is None
