# SPDX-License-Identifier: Apache-2.0
"""Watches one child: reads its pipes, keeps its deadline, and makes sure that it and its session are
gone.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from probes.child_output import HeadTail, LineSplitter

TERM_GRACE_S = 2.0
_DRAIN_S = 1.0
_TICK_S = 0.02
_LONG_TICK_S = 0.5
"""Even where the kernel tells the end: a Ctrl-C that another thread received interrupts no wait of this one."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one child. ``address_space_bytes`` is RLIMIT_AS (None: unlimited; sanitizers need that).

    ``stuck_after_s`` is how long after SIGKILL the child may still exist before it counts as stuck.
    """

    address_space_bytes: int | None = None
    raise_nofile: bool = True
    line_bytes: int = 1 << 20
    stdout_bytes: int = 64 << 20
    stderr_head_bytes: int = 32 << 10
    stderr_tail_bytes: int = 96 << 10
    result_bytes: int = 64 << 20
    term_grace_s: float = TERM_GRACE_S
    stuck_after_s: float = 5.0


@dataclass
class Supervised:
    """One child under watch: reads its pipes, keeps its deadline and makes sure that it and its group
    are gone.
    """

    argv: tuple[str, ...]
    deadline_s: float
    limits: Limits
    on_line: Callable[[str], None]
    started: float = 0.0
    ended: float = 0.0
    first_signal_at: float | None = None
    last_signal: signal.Signals | None = None
    stuck: bool = False
    stuck_in: str | None = None
    status: int | None = None
    launch_error: str | None = None
    survivors: tuple[int, ...] = ()
    readers: list[tuple[IO[bytes], Callable[[bytes], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.errors = HeadTail(head_bytes=self.limits.stderr_head_bytes, tail_bytes=self.limits.stderr_tail_bytes)
        self.lines = LineSplitter(self.on_line, line_bytes=self.limits.line_bytes, total_bytes=self.limits.stdout_bytes)

    def also_read(self, stream: IO[bytes], feed: Callable[[bytes], None]) -> None:
        """Reads one more pipe beside stdout and stderr."""
        self.readers.append((stream, feed))

    def run(
        self, command: list[str], env: Mapping[str, str] | None, cwd: Path | None, pass_fds: tuple[int, ...]
    ) -> None:
        """Starts the child and returns when it is gone or given up. Closes the last of ``pass_fds``, its
        write end.
        """
        self.started = time.monotonic()
        process: subprocess.Popen[bytes] | None = None
        try:
            try:
                process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    env=None if env is None else dict(env),
                    cwd=cwd,
                    pass_fds=pass_fds,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                self.launch_error = str(error)
                self.ended = time.monotonic()
                return
            finally:
                os.close(pass_fds[-1])
            self._watch(process)
        finally:
            if process is not None:
                self._finish(process)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        streams = [*self.readers, (process.stdout, self.lines.feed), (process.stderr, self.errors.feed)]
        pidfd = _pidfd(process.pid)
        try:
            with selectors.DefaultSelector() as selector:
                for stream, feed in streams:
                    selector.register(stream, selectors.EVENT_READ, feed)
                if pidfd >= 0:
                    selector.register(pidfd, selectors.EVENT_READ, None)
                while not _has_ended(process.pid):
                    now = time.monotonic()
                    if self._advance(process.pid, now):
                        return
                    wait = max(0.0, self._next_at() - now)
                    _pump(selector, min(wait, _TICK_S if pidfd < 0 else _LONG_TICK_S))
                self.ended = time.monotonic()
                _kill_session(process.pid)
                if pidfd >= 0:
                    selector.unregister(pidfd)
                limit = time.monotonic() + _DRAIN_S
                while selector.get_map() and time.monotonic() < limit:
                    _pump(selector, max(0.0, limit - time.monotonic()))
                self.lines.close()
        finally:
            if pidfd >= 0:
                os.close(pidfd)

    def _next_at(self) -> float:
        if self.first_signal_at is None:
            return self.started + self.deadline_s
        at_kill = self.first_signal_at + self.limits.term_grace_s
        return at_kill if self.last_signal is signal.SIGTERM else at_kill + self.limits.stuck_after_s

    def _advance(self, pid: int, now: float) -> bool:
        """Sends the signal that is due. True when there is none left to send: the child is stuck."""
        if now < self._next_at():
            return False
        if self.last_signal is signal.SIGKILL:
            self.stuck, self.stuck_in = True, _where_it_sits(pid)
            return True
        if self.first_signal_at is None:
            self.first_signal_at = now
        self.last_signal = signal.SIGTERM if self.last_signal is None else signal.SIGKILL
        if self.last_signal is signal.SIGKILL:
            _kill_session(pid)
        else:
            _signal_group(pid, signal.SIGTERM)
        return False

    def _finish(self, process: subprocess.Popen[bytes]) -> None:
        """Kills what is left, whatever happened before, and reaps the child."""
        if not self.ended:
            self.ended = time.monotonic()
        self.survivors = _kill_session(process.pid)
        if process.stdout is not None:
            process.stdout.close()
        if process.stderr is not None:
            process.stderr.close()
        if not self.stuck:
            try:
                self.status = process.wait(self.limits.stuck_after_s)
            except subprocess.TimeoutExpired:
                self.stuck, self.stuck_in = True, _where_it_sits(process.pid)
        if self.stuck:
            # Whoever is stuck now may still die later; somebody has to reap it then.
            threading.Thread(target=process.wait, daemon=True, name=f"reap-{process.pid}").start()


def _pump(selector: selectors.BaseSelector, timeout: float) -> None:
    for key, _ in selector.select(timeout):
        if key.data is None:
            continue
        data = os.read(key.fd, 1 << 16)
        if data:
            key.data(data)
        else:
            selector.unregister(key.fileobj)


def _pidfd(pid: int) -> int:
    """A descriptor that becomes readable when ``pid`` ends, or -1 on kernels before 5.3 (RK356x vendor
    4.19).
    """
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return -1


def _has_ended(pid: int) -> bool:
    """Whether the child ended. It stays a zombie until reaped, so that its group id cannot be taken by
    others.
    """
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True  # SIGCHLD is ignored in this process: the kernel has reaped it already


def _signal_group(pid: int, number: signal.Signals) -> None:
    # Gone already, or a set-uid program that is not ours to signal.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _kill_session(pid: int) -> tuple[int, ...]:
    """SIGKILL to the child's group and to every other process of its session. Returns those still alive
    after it.
    """
    _signal_group(pid, signal.SIGKILL)
    alive: tuple[int, ...] = ()
    for _ in range(50):
        alive = tuple(other for other in _session_members(pid) if other != pid)
        if not alive:
            break
        for other in alive:
            try:
                os.kill(other, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue
        time.sleep(0.01)
    return alive


def _session_members(session: int) -> list[int]:
    """Living processes whose session is ``session``; zombies are not living."""
    try:
        names = [entry.name for entry in os.scandir("/proc") if entry.name.isdigit()]
    except OSError:
        return []  # no /proc: the process group is all that can be reached
    members = []
    for name in names:
        fields = _stat_fields(int(name))
        if len(fields) > 3 and fields[0] not in ("Z", "X") and fields[3] == str(session):
            members.append(int(name))
    return members


def _stat_fields(pid: int) -> list[str]:
    """State, parent, group, session and so on of a process; nothing where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return []
    # The command name may hold spaces and brackets; the fields are counted from its last bracket.
    return text.rpartition(")")[2].split()


def _where_it_sits(pid: int) -> str:
    """State letter of a process and the kernel function it waits in, such as ``D in rknpu_wait_fence``."""
    state = (_stat_fields(pid) or ["?"])[0]
    try:
        place = Path(f"/proc/{pid}/wchan").read_text("utf-8", "replace").strip("\0 \n")
    except OSError:
        place = ""
    return f"{state} in {place}" if place not in ("", "0") else state
