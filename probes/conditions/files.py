# SPDX-License-Identifier: Apache-2.0
"""Bounded reading of small text files, again and again: unreadable is None, a file that never ends is cut.

``probes.system.System`` asks each path once and remembers the answer; a sampler needs it anew each time.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

_FOUR_KIB = 4096


def read_text(path: Path, limit: int = _FOUR_KIB) -> str | None:
    """The first ``limit`` bytes of a regular file as ASCII (other bytes replaced), or None.

    Sensor files give EAGAIN or EINVAL while a sensor is off, and files vanish with their devices: both are
    None. A FIFO in a copied tree must not block the sampler, so the file is opened without blocking and its
    type looked at.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        chunks = bytearray()
        while len(chunks) < limit:
            chunk = os.read(descriptor, limit - len(chunks))
            if not chunk:
                break
            chunks += chunk
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return chunks.decode("ascii", "replace")


def names(folder: Path) -> list[str]:
    """Names in a folder, in order, ``zone2`` before ``zone10``; empty when it cannot be listed."""
    try:
        found = [entry.name for entry in os.scandir(folder)]
    except OSError:
        return []
    return sorted(found, key=lambda name: (len(name), name))


def inside(root: Path, folder: Path) -> Path | None:
    """The folder with its links followed, or None when they lead out of ``root``: copied trees are not
    trusted."""
    real = Path(os.path.realpath(folder))
    return real if real.is_relative_to(os.path.realpath(root)) else None
