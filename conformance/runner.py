# SPDX-License-Identifier: Apache-2.0
"""Talks to the worker process: one request, one answer, whatever happens to the worker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from conformance.readable import readable
from conformance.subjects import Subject
from reports.contract import Verdict

ROOT = Path(__file__).resolve().parent.parent
_MARGIN_S = 30.0
"""What the worker may take beyond the check's deadline to kill it and to answer."""


@dataclass(frozen=True)
class Outcome:
    """How one check ended. ``covered`` for a pass, ``reason`` for everything else."""

    check: str
    verdict: Verdict
    seconds: float
    covered: str | None = None
    reason: str | None = None
    unexpected: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    suite: str = "runtime"


class Runner:
    """Runs checks on a target, each in its own child with a deadline. A context manager."""

    def __init__(self, target: Subject, *, level: str, seed: int, env: Mapping[str, str] | None = None) -> None:
        self.target, self.level, self.seed = target, level, seed
        self._env = dict(env or {})
        self._process: subprocess.Popen[str] | None = None

    def run(self, check: str, *, deadline_s: float, env: Mapping[str, str] | None = None) -> Outcome:
        """Runs one check; never raises for what the library does."""
        request = {
            **self.target.request,
            "suite": self.target.suite,
            "check": check,
            "level": self.level,
            "seed": self.seed,
            "deadline_s": deadline_s,
            "env": {**self._env, **(env or {})},
        }
        try:
            answer = self._ask(json.dumps(request), deadline_s + _MARGIN_S)
        except (OSError, ValueError) as error:
            self.close()
            reason = f"the process that runs checks is gone: {error}"
            return Outcome(check, Verdict.COULD_NOT_RUN, 0.0, reason=reason, suite=self.target.suite)
        return Outcome(
            check,
            Verdict(answer["verdict"]),
            float(answer["seconds"]),
            answer.get("covered"),
            answer.get("reason"),
            tuple(answer.get("unexpected") or ()),
            tuple(answer.get("known") or ()),
            self.target.suite,
        )

    def close(self) -> None:
        """Ends the worker; the next check starts a new one."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, line: str, timeout_s: float) -> dict[str, Any]:
        process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise ValueError("it has no pipes")
        process.stdin.write(line + "\n")
        process.stdin.flush()
        if not readable(process.stdout, timeout_s):
            raise ValueError(f"no answer within {timeout_s:g} s")
        text = process.stdout.readline()
        if not text:
            raise ValueError("it ended")
        return dict(json.loads(text))

    def _start(self) -> subprocess.Popen[str]:
        # One BLAS thread: a process with threads must not fork.
        env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "conformance.worker"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env, cwd=ROOT)
        return self._process
