# SPDX-License-Identifier: Apache-2.0
"""Runs a program or a Python function in a child that cannot take the kit down with it.

The child has its own session, no core file, descriptors up to the hard limit, nothing on stdin and a
deadline. What it starts dies with it: after the deadline SIGTERM goes to its process group, two seconds
later SIGKILL, and the time this took is measured. A child that sits in the kernel (state D, as with a lost
NPU interrupt) cannot be killed; it is reported as stuck instead of being waited for. The kernel kills the
child when the kit itself is killed.

Only descendants that make a session of their own escape (daemons do that on purpose).
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c_probes.signal_names import signal_name
from probes.child_output import HeadTail, LineSplitter
from probes.child_watch import Limits, Supervised
from reports.contract import Verdict

__all__ = ["CallResult", "ChildResult", "Limits", "call_in_child", "run_child"]

_ENTRY = Path(__file__).with_name("child_entry.py")
DEFAULT_LIMITS = Limits()
_MAX_LOG_BYTES = 64 << 10


@dataclass(frozen=True)
class ChildResult:
    """How a child ended. Exactly one of ``exit_code``, ``signal_name``, ``start_error`` and ``stuck``
    applies.

    ``stuck_in`` is the state letter and, where it may be read, the kernel function of a stuck child.
    ``timed_out`` says that the deadline passed; ``kill_s`` is then the time from the first signal to the
    end, and ``kill_signal`` the last signal sent. ``survivors`` are processes of the child's session that
    outlived SIGKILL. ``stdout_lines`` is filled only when no ``on_line`` was given. ``stdout_truncated``
    marks lost output.
    """

    argv: tuple[str, ...]
    duration_s: float
    exit_code: int | None = None
    signal_name: str | None = None
    start_error: str | None = None
    timed_out: bool = False
    stuck: bool = False
    stuck_in: str | None = None
    kill_s: float | None = None
    kill_signal: str | None = None
    stdout_lines: tuple[str, ...] = ()
    stdout_truncated: bool = False
    stderr: str = ""
    survivors: tuple[int, ...] = ()

    @property
    def ok(self) -> bool:
        """Ended by itself, in time, with exit code 0."""
        return self.exit_code == 0 and not self.timed_out

    @property
    def verdict(self) -> Verdict:
        """The contract's word for this end."""
        if self.start_error is not None:
            return Verdict.COULD_NOT_RUN
        if self.timed_out:
            return Verdict.TIMED_OUT
        if self.signal_name is not None:
            return Verdict.CRASHED
        return Verdict.PASSED if self.exit_code == 0 else Verdict.FAILED

    @property
    def sentence(self) -> str:
        """One line for a person: how it ended and after how long."""
        name = Path(self.argv[0]).name
        if self.start_error is not None:
            return f"{name} could not be started: {self.start_error}."
        if self.stuck:
            return (
                f"{name} did not end within {self.duration_s:.1f} s and cannot be killed: it is stuck in the "
                f"kernel (state {self.stuck_in}). A reboot is needed."
            )
        if self.timed_out:
            return (
                f"{name} passed its deadline and was ended after {self.duration_s:.1f} s by "
                f"{self.kill_signal}, {self.kill_s or 0.0:.1f} s after the first signal."
            )
        if self.signal_name is not None:
            return f"{name} was ended by {self.signal_name} after {self.duration_s:.1f} s."
        return f"{name} ended with exit code {self.exit_code} after {self.duration_s:.1f} s."


@dataclass(frozen=True)
class CallResult:
    """How a function called in a child ended.

    ``value`` is its result when ``verdict`` is passed. ``error_type`` and ``error`` describe the exception
    when the verdict is failed. ``last_step`` is the last breadcrumb (:func:`probes.child_steps.step`),
    whatever the
    end, and ``log`` what a captured library call had written when the child died in it.
    """

    verdict: Verdict
    child: ChildResult
    value: Any = None
    error_type: str | None = None
    error: str | None = None
    last_step: str | None = None
    log: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """One line for a person."""
        where = f" Last step: {self.last_step}." if self.last_step else ""
        if self.verdict is Verdict.FAILED and self.error is not None:
            return f"{self.error_type}: {self.error}{where}"
        said = f" The library said: {' | '.join(self.log[-4:])}" if self.log else ""
        return self.child.sentence + where + said


def run_child(
    argv: Sequence[str],
    *,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    cwd: Path | None = None,
) -> ChildResult:
    """Runs ``argv`` to its end or to ``deadline_s`` seconds, whichever comes first. Never raises for what
    it does.

    ``env`` is the whole environment (None: this process's own). ``on_line`` gets each stdout line while the
    child runs; whatever it raises ends the child and is passed on, and so does Ctrl-C. Safe to call from
    threads.
    """
    if not argv:
        raise ValueError("run_child needs a program: argv is empty")
    kept: list[str] = []
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb", buffering=0) as status:
        start_error = HeadTail(head_bytes=4096, tail_bytes=0)
        spec = _spec(limits)
        command = [sys.executable, "-I", "-S", str(_ENTRY), "program", spec, str(write_end), *argv]
        run = Supervised(tuple(argv), deadline_s, limits, on_line or kept.append)
        run.also_read(status, start_error.feed)
        run.run(command, env, cwd, pass_fds=(write_end,))
    return _result(run, tuple(kept), start_error.text() or None)


def call_in_child(
    function: str,
    *args: Any,
    deadline_s: float,
    env: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    on_step: Callable[[str], None] | None = None,
    **kwargs: Any,
) -> CallResult:
    """Calls ``function`` ("package.module:name") with JSON arguments in a fresh interpreter; its result
    comes as JSON.

    Verdicts: passed (``value`` holds the result), failed (it raised), crashed, timed-out, could-not-run. A
    child that delivered its result and then died in a destructor counts as crashed, with the value kept.
    """
    module, _, name = function.partition(":")
    if not module or not name.isidentifier():
        raise ValueError(f"{function!r} names no function; write package.module:function")
    root = str(Path(__file__).resolve().parent.parent)
    path = [root, *(str(Path(entry or ".").resolve()) for entry in sys.path if entry != root)]
    request = {"module": module, "function": name, "args": args, "kwargs": kwargs, "path": path}
    channel = _Channel(on_step)
    read_end, write_end = os.pipe()
    with (
        tempfile.TemporaryFile() as stream,
        tempfile.TemporaryFile() as log,
        os.fdopen(read_end, "rb", buffering=0) as answers,
    ):
        stream.write(json.dumps(request).encode())
        stream.flush()
        stream.seek(0)
        fds = (stream.fileno(), log.fileno(), write_end)
        command = [sys.executable, "-I", str(_ENTRY), "call", _spec(limits), *map(str, fds)]
        lines = LineSplitter(channel.line, line_bytes=limits.result_bytes, total_bytes=limits.result_bytes)
        kept: list[str] = []
        run = Supervised((function,), deadline_s, limits, kept.append)
        run.also_read(answers, lines.feed)
        run.run(command, env, None, pass_fds=fds)
        lines.close()
        left = os.pread(log.fileno(), _MAX_LOG_BYTES, 0).decode("utf-8", "replace")
    child = _result(run, tuple(kept), None)
    verdict, error_type, error = child.verdict, channel.error_type, channel.error
    if verdict is Verdict.PASSED and error is not None:
        verdict = Verdict.FAILED
    elif verdict is Verdict.PASSED and not channel.answered:
        too_long = lines.truncated
        error_type, error = (
            "NoResult",
            "the result is too long" if too_long else "the child ended without a result",
        )
        verdict = Verdict.FAILED
    log_lines = tuple(line.rstrip() for line in left.splitlines() if line.strip())
    return CallResult(verdict, child, channel.value, error_type, error, channel.last_step, log_lines)


def _spec(limits: Limits) -> str:
    return json.dumps(
        {
            "parent": os.getpid(),
            "raise_nofile": limits.raise_nofile,
            "address_space_bytes": limits.address_space_bytes,
        }
    )


@dataclass
class _Channel:
    """Reads the JSON lines that a called function's child sends."""

    on_step: Callable[[str], None] | None
    answered: bool = False
    value: Any = None
    error_type: str | None = None
    error: str | None = None
    last_step: str | None = None

    def line(self, text: str) -> None:
        try:
            record = json.loads(text)
        except (ValueError, RecursionError):
            return
        if not isinstance(record, dict):
            return
        if "step" in record:
            self.last_step = str(record["step"])
            if self.on_step is not None:
                self.on_step(self.last_step)
        elif "result" in record:
            self.answered, self.value = True, record["result"]
        elif isinstance(record.get("error"), dict):
            self.error_type = str(record["error"].get("type"))
            self.error = str(record["error"].get("message"))


def _result(run: Supervised, stdout_lines: tuple[str, ...], start_error: str | None) -> ChildResult:
    problem = run.launch_error or start_error
    status = None if problem else run.status
    return ChildResult(
        argv=run.argv,
        duration_s=run.ended - run.started,
        exit_code=status if status is not None and status >= 0 else None,
        signal_name=signal_name(-status) if status is not None and status < 0 else None,
        start_error=problem,
        timed_out=run.first_signal_at is not None,
        stuck=run.stuck,
        stuck_in=run.stuck_in,
        kill_s=None if run.first_signal_at is None else run.ended - run.first_signal_at,
        kill_signal=None if run.last_signal is None else run.last_signal.name,
        stdout_lines=stdout_lines,
        stdout_truncated=run.lines.truncated,
        stderr=run.errors.text(),
        survivors=run.survivors,
    )
