# SPDX-License-Identifier: Apache-2.0
"""One user of the NPU at a time on this machine: an advisory lock that dies with its holder.

Two programs on the NPU at once disturb each other's timing at best; kernel panics were reported for two
processes with their own IOMMU domains (igou-io/igou-kubernetes pull 869, rockchip-linux/rknpu2 issue 135).
The lock stops a second run of this kit only; foreign programs are found by the tenants probe.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

LOCK_NAME = "rknpu-kit.lock"
_NOTE_BYTES = 4096


class LockError(RuntimeError):
    """The lock file cannot be used, for example because somebody put a symbolic link in its place."""


@dataclass(frozen=True)
class Holder:
    """Who holds the lock, as far as the note in the file tells. ``since`` is in seconds since the epoch."""

    pid: int | None
    since: float | None
    command: str | None

    def __str__(self) -> str:
        if self.pid is None:
            return "a process that left no note"
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since)) if self.since is not None else "?"
        return f"process {self.pid} ({self.command or 'unknown command'}), since {when}"


class Busy(LockError):
    """Another process holds the lock; ``holder`` names it."""

    def __init__(self, path: Path, holder: Holder) -> None:
        super().__init__(f"The NPU lock {path} is held by {holder}; wait until it ends, or stop it.")
        self.path = path
        self.holder = holder


def default_path(
    env: Mapping[str, str] | None = None, *, run_lock: Path = Path("/run/lock"), temp: Path | None = None
) -> Path:
    """Where the lock lies: ``/run/lock``, else ``$XDG_RUNTIME_DIR``, else the temp directory with the uid
    in the name.

    ``/run/lock`` is the only one of the three that all users share, so it comes first.
    """
    environment = os.environ if env is None else env
    if run_lock.is_dir() and os.access(run_lock, os.W_OK | os.X_OK):
        return run_lock / LOCK_NAME
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    if runtime and Path(runtime).is_absolute() and os.access(runtime, os.W_OK | os.X_OK):
        return Path(runtime) / LOCK_NAME
    return (temp or Path(tempfile.gettempdir())) / f"rknpu-kit-{os.getuid()}.lock"


def lock_path(env: Mapping[str, str] | None = None) -> Path:
    """The file that ``RKNPU_KIT_LOCK`` names, for where ``/run/lock`` cannot be shared (containers, tests), else the
    usual one.
    """
    environment = os.environ if env is None else env
    named = environment.get("RKNPU_KIT_LOCK")
    return Path(named) if named else default_path(environment)


class NpuLock:
    """The lock as a context manager. ``with NpuLock():`` takes it or raises :class:`Busy` at once.

    The kernel frees it when the process ends, however it ends. The file itself stays: removing it would let
    two processes lock two files of one name.
    """

    def __init__(self, path: Path | None = None) -> None:
        self.path = path if path is not None else default_path()
        self._fd: int | None = None

    @property
    def held(self) -> bool:
        """Whether this object holds the lock now."""
        return self._fd is not None

    def acquire(self, *, wait_s: float = 0.0) -> None:
        """Takes the lock, trying for ``wait_s`` seconds.

        Raises :class:`Busy` when another process has it and :class:`LockError` when the file cannot be used.
        """
        if self._fd is not None:
            raise LockError(f"The NPU lock {self.path} is already held by this object; release it first.")
        fd = _open_safely(self.path)
        try:
            _lock(fd, self.path, wait_s)
            _write_note(fd)
        except BaseException:
            os.close(fd)
            raise
        self._fd = fd

    def release(self) -> None:
        """Gives the lock back. Doing so twice is no error."""
        fd, self._fd = self._fd, None
        if fd is None:
            return
        try:
            os.ftruncate(fd, 0)
        except OSError:
            pass  # the note is a courtesy; the lock goes with the descriptor
        finally:
            os.close(fd)

    def __enter__(self) -> NpuLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def read_holder(path: Path) -> Holder:
    """The note in the lock file; every field is None where there is none or it makes no sense."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return Holder(None, None, None)
    try:
        return _parse_note(os.read(fd, _NOTE_BYTES) if stat.S_ISREG(os.fstat(fd).st_mode) else b"")
    except OSError:
        return Holder(None, None, None)
    finally:
        os.close(fd)


def _parse_note(note: bytes) -> Holder:
    try:
        fields = json.loads(note)
    except (ValueError, RecursionError):
        return Holder(None, None, None)
    if not isinstance(fields, dict):
        return Holder(None, None, None)
    pid, since, command = fields.get("pid"), fields.get("since"), fields.get("command")
    return Holder(
        pid if isinstance(pid, int) and not isinstance(pid, bool) and 0 < pid < 1 << 31 else None,
        float(since) if isinstance(since, (int, float)) and 0 < since < 1e11 else None,
        "".join(c for c in command[:80] if c.isprintable()) if isinstance(command, str) else None,
    )


def _open_safely(path: Path) -> int:
    """Opens or creates the lock file without following a link and without touching what is no plain file.

    The directory may be writable by everybody, and with ``fs.protected_regular`` the kernel refuses O_CREAT
    on a file of another user there, so an existing file is opened without that flag first.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
    fd = -1
    for extra in (0, os.O_CREAT | os.O_EXCL, 0):
        try:
            fd = os.open(path, flags | extra, 0o666)
            break
        except (FileNotFoundError, FileExistsError) as error:
            problem: OSError = error
        except OSError as error:
            raise _unusable(path, error) from error
    if fd < 0:
        raise _unusable(path, problem) from problem
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
        os.close(fd)
        raise LockError(f"The NPU lock {path} is no plain file of one name; remove it or name another lock file.")
    if found.st_uid == os.getuid() and stat.S_IMODE(found.st_mode) != 0o666 and path.parent == Path("/run/lock"):
        os.fchmod(fd, 0o666)  # the umask must not keep other users from seeing that the NPU is taken
    return fd


def _unusable(path: Path, error: OSError) -> LockError:
    if error.errno == errno.ELOOP:
        return LockError(f"The NPU lock {path} is a symbolic link; remove it or name another lock file.")
    return LockError(f"The NPU lock {path} cannot be opened ({error.strerror}); name another lock file.")


def _lock(fd: int, path: Path, wait_s: float) -> None:
    end = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left = end - time.monotonic()
            if left <= 0:
                raise Busy(path, read_holder(path)) from None
            time.sleep(min(0.05, left))
        except OSError as error:
            raise LockError(f"The NPU lock {path} cannot be taken ({error.strerror}).") from error
        else:
            return


def _write_note(fd: int) -> None:
    try:
        command = Path("/proc/self/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        command = ""
    note = json.dumps({"pid": os.getpid(), "since": time.time(), "command": command})
    os.ftruncate(fd, 0)
    os.pwrite(fd, note.encode() + b"\n", 0)
