# SPDX-License-Identifier: Apache-2.0
"""What comes of asking a board: a value, or a refusal with its reason; and a reader that does not block."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

T = TypeVar("T")


class Refusal(str, Enum):
    """Why there is no answer."""

    ABSENT = "absent"
    PERMISSION = "permission denied"
    TOO_LARGE = "larger than the limit"
    NOT_TEXT = "not text"
    NOT_A_FILE = "not a plain file"
    TIMED_OUT = "did not answer in time"
    LOOP = "loop of symbolic links"
    FAILED = "read failed"


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What came of asking for ``path``: a value, or a refusal with the detail the system gave."""

    path: str
    value: T | None
    refusal: Refusal | None = None
    detail: str = ""

    @property
    def reason(self) -> str:
        """One clause for a report: which path, and why it gave nothing."""
        if self.refusal is None:
            return f"{self.path}: no usable value"
        return f"{self.path}: {self.refusal.value}" + (f" ({self.detail})" if self.detail else "")

    @property
    def needs_root(self) -> bool:
        return self.refusal is Refusal.PERMISSION


@dataclass(frozen=True)
class Node:
    """Metadata of a path, links followed: ``kind`` is file, dir, char, block, fifo, socket or link."""

    kind: str
    mode: int
    uid: int
    gid: int
    rdev: tuple[int, int] | None = None
    accessible: bool | None = None


class Refused(OSError):
    """Carries a refusal out of a job."""

    def __init__(self, refusal: Refusal, detail: str) -> None:
        super().__init__(0, detail)
        self.refusal = refusal
        self.detail = detail


def why(error: OSError) -> tuple[Refusal, str]:
    if isinstance(error, Refused):
        return error.refusal, error.detail
    table = {
        errno.ENOENT: Refusal.ABSENT,
        errno.ENOTDIR: Refusal.ABSENT,
        errno.ENXIO: Refusal.ABSENT,
        errno.ENODEV: Refusal.ABSENT,
        errno.EACCES: Refusal.PERMISSION,
        errno.EPERM: Refusal.PERMISSION,
        errno.ELOOP: Refusal.LOOP,
        errno.EAGAIN: Refusal.TIMED_OUT,
    }
    refusal = table.get(error.errno or 0, Refusal.FAILED)
    detail = errno.errorcode.get(error.errno or 0, str(error)) if refusal is Refusal.FAILED else ""
    return refusal, detail


def kind_of(mode: int) -> str:
    kinds = (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "dir"),
        (stat.S_ISCHR, "char"),
        (stat.S_ISBLK, "block"),
        (stat.S_ISFIFO, "fifo"),
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISLNK, "link"),
    )
    return next((name for test, name in kinds if test(mode)), "unknown")


def read_plain(path: str, size: int) -> bytes:
    """At most ``size`` bytes of a plain file. A file swapped for a device or FIFO in between does not block."""
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(path, flags)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Refused(Refusal.NOT_A_FILE, "changed while it was opened")
        data = bytearray()
        while len(data) < size:
            part = os.read(handle, min(65536, size - len(data)))
            if not part:
                break
            data += part
        return bytes(data)
    finally:
        os.close(handle)


def printable(text: str) -> bool:
    """Whether text holds no control characters except tab and line ends. A few replacement characters may pass."""
    if any((char < " " and char not in "\t\n\r\f\x1b") or char == "\x7f" for char in text):
        return False
    return text.count("\ufffd") * 4 <= len(text)
