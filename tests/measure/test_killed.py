# SPDX-License-Identifier: Apache-2.0
"""A run that is killed at any moment leaves a readable log, no child and a free lock; the next run names the step."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from c_probes.lock import NpuLock
from probes.__main__ import _cut_short
from tests.measure.conftest import CHECKOUT

CHOSEN = [word for name in ("types", "cost", "leaks") for word in ("--only", name)]
TIMES = 20
EVENTS = 440
"""A run has got no further than this many lines of its log when it is killed; a whole one has about 920."""


def processes_with(mark: str) -> list[int]:
    """Every process whose environment holds ``mark``: the run and all that it started."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark.encode() in (entry / "environ").read_bytes() and (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def lines_in(folder: Path) -> int:
    """Lines of the run's log so far; -1 before there is one."""
    logs = list(folder.glob("out/*.events.jsonl"))
    return logs[0].read_bytes().count(b"\n") if logs else -1


def start(folder: Path, *arguments: str) -> tuple[subprocess.Popen[bytes], dict[str, str]]:
    env = {**os.environ, "RKNPU_KIT_LOCK": str(folder / "npu.lock"), "RKNN_MOCK_TIMING": "campaign"}
    command = [sys.executable, "-m", "probes", "--mock", "--output", str(folder / "out"), *arguments]
    run = subprocess.Popen(command, cwd=CHECKOUT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return run, env


def test_twenty_runs_killed_at_random_moments(built: Path, tmp_path: Path) -> None:
    moments = random.Random(1)
    named: set[str] = set()
    for number in range(TIMES):
        folder = tmp_path / str(number)
        run, env = start(folder, *CHOSEN)
        wanted = moments.randrange(EVENTS)  # not a time: what a busy machine reaches by then is chance
        deadline = time.monotonic() + 300
        while lines_in(folder) < wanted:
            assert time.monotonic() < deadline
            assert run.poll() is None, "the run was over before it was killed"
            time.sleep(0.002)
        run.send_signal(signal.SIGKILL)
        assert run.wait(timeout=30) == -signal.SIGKILL

        deadline = time.monotonic() + 30
        while left := processes_with(env["RKNPU_KIT_LOCK"]):
            assert time.monotonic() < deadline, f"processes {left} outlived the run"
            time.sleep(0.05)
        with NpuLock(folder / "npu.lock"):
            pass
        (log,) = folder.glob("out/*.events.jsonl")
        lines = log.read_bytes().split(b"\n")  # the last one may be cut off
        events = [json.loads(line) for line in lines[:-1]]
        assert not events or events[0]["event"] == "run-started"
        step = _cut_short(folder / "out" / "report.json") or ""
        assert step
        named.add(step)
    assert len(named) > 3, "the moments should have fallen into different steps"

    after, _ = start(folder, "--level", "quick")
    assert after.wait(timeout=120) == 0
    (report,) = folder.glob("out/report-*.json")
    (finding,) = [f for f in json.loads(report.read_text())["findings"] if f["code"] == "NPU-S003"]
    assert step in finding["what"]
