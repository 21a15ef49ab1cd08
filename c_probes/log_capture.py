# SPDX-License-Identifier: Apache-2.0
"""Catches what a C library writes to descriptors 1 and 2 during a call.

librknnrt writes lines like ``E RKNN: [08:51:31.447] text`` to stderr or stdout (librknnrt 2.3.2 strings;
levels E W I D T), and for many refusals that line is the only thing that says why. Descriptors belong to
the whole process, so one lock serves all captures: captured calls of two threads wait for each other, and
what another thread prints meanwhile is captured too.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_LOG_BYTES = 256 << 10
"""Of one call. A runtime at log level 5 writes megabytes; the first and last part tell enough."""

_ERROR_LINE = re.compile(r"^\s*E RKNN")
_descriptors = threading.RLock()
_survivors: list[int] = []


def survive_in(fd: int) -> None:
    """Lets captures of this process go to ``fd``, a file that a parent reads when this process dies in a call.

    Called once, by the start-up code of a child. The file holds the output of one call at most.
    """
    _survivors[:] = [fd]


@dataclass
class CapturedLog:
    """Filled when the capture ends: every non-empty line, in order."""

    lines: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[str, ...]:
        """The lines of level E."""
        return tuple(line for line in self.lines if _ERROR_LINE.match(line))


class LogCapture:
    """Captures into one unnamed file that is reused, or appends to ``log_file``, which keeps all calls.

    ``flush_c`` empties the C library's own buffers; without it a ``printf`` of the library may surface much
    later.
    """

    def __init__(self, flush_c: Callable[[], object], log_file: Path | None = None) -> None:
        self._flush_c = flush_c
        self._keep = log_file is not None
        self._fd = _unnamed_file() if log_file is None else _appendable(log_file)
        # A finalizer, because a library is usually kept until the process ends.
        self._closer = weakref.finalize(self, os.close, self._fd)

    def close(self) -> None:
        """Closes the file. The object cannot capture after that."""
        self._closer()

    @contextlib.contextmanager
    def during(self) -> Iterator[CapturedLog]:
        """While this is open, descriptors 1 and 2 lead into the file. They are restored whatever happens."""
        log = CapturedLog()
        with _descriptors:
            fd = self._fd
            start = os.lseek(fd, 0, os.SEEK_END)
            self._flush_all()
            saved = {target: _duplicate(target) for target in (1, 2)}
            try:
                for target in saved:
                    os.dup2(fd, target)
                yield log
            finally:
                self._flush_all()
                for target, copy in saved.items():
                    _restore(target, copy)
                log.lines = _lines(_read(fd, start))
                if not self._keep:
                    os.ftruncate(fd, 0)
                    os.lseek(fd, 0, os.SEEK_SET)

    def _flush_all(self) -> None:
        for stream in (sys.stdout, sys.stderr):
            # None under pythonw-like starts, closed or broken in daemons: nothing to flush then.
            with contextlib.suppress(AttributeError, ValueError, OSError):
                stream.flush()
        self._flush_c()


def _unnamed_file() -> int:
    for fd in _survivors:
        return os.dup(fd)
    fd, name = tempfile.mkstemp(prefix="rknpu-kit-log-")
    Path(name).unlink()
    return fd


def _appendable(log_file: Path) -> int:
    return os.open(log_file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _duplicate(target: int) -> int | None:
    try:
        return os.dup(target)
    except OSError:
        return None  # it was closed; it is closed again afterwards


def _restore(target: int, copy: int | None) -> None:
    if copy is None:
        with contextlib.suppress(OSError):
            os.close(target)
        return
    os.dup2(copy, target)
    os.close(copy)


def _read(fd: int, start: int) -> bytes:
    end = os.lseek(fd, 0, os.SEEK_END)
    if end - start <= MAX_LOG_BYTES:
        return os.pread(fd, end - start, start)
    half = MAX_LOG_BYTES // 2
    return os.pread(fd, half, start) + b"\n[...]\n" + os.pread(fd, half, end - half)


def _lines(data: bytes) -> tuple[str, ...]:
    text = data.decode("utf-8", "replace")
    return tuple(line.rstrip() for line in text.splitlines() if line.strip())
