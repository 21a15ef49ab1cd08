# SPDX-License-Identifier: Apache-2.0
"""Paths below a root that need not be ``/``: links resolve inside it, and nothing leads out of it."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import stat
from pathlib import Path

_MAX_LINKS = 40
_MAX_MATCHES = 512
_MAX_ENTRIES = 20_000


def resolve_in_root(root: Path, path: str) -> Path | None:
    """The real place of ``path`` (absolute, as seen inside ``root``), or None where there is nothing.

    Absolute links start again at ``root`` and ``..`` stops there, as after a chroot.
    """
    if "\0" in path:
        return None
    waiting = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    done: list[str] = []
    links = 0
    while waiting:
        part = waiting.pop()
        if part == "..":
            del done[-1:]
            continue
        here = root.joinpath(*done, part)
        try:
            mode = here.lstat().st_mode
            target = str(here.readlink()) if stat.S_ISLNK(mode) else None
        except (OSError, ValueError):
            return None
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > _MAX_LINKS:
            return None
        if target.startswith("/"):
            done.clear()
        waiting += [piece for piece in reversed(target.split("/")) if piece not in ("", ".")]
    return root.joinpath(*done)


def read_in_root(root: Path, path: str, limit: int) -> bytes | None:
    """The content of a regular file of at most ``limit`` bytes; None where there is none, or a longer
    one.
    """
    inside = resolve_in_root(root, path)
    if inside is None:
        return None
    try:
        fd = os.open(inside, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as stream:
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return None
            data = stream.read(limit + 1)
        except OSError:
            return None
    return data if len(data) <= limit else None


def glob_in_root(root: Path, pattern: str) -> list[str]:
    """Paths inside ``root`` that match an absolute pattern of ``*``, ``?`` and ``[..]`` per component,
    sorted.
    """
    found = ["/"]
    for part in [piece for piece in posixpath.normpath(pattern).split("/") if piece]:
        step: list[str] = []
        for base in found:
            if any(character in part for character in "*?["):
                names = [n for n in _names(root, base) if fnmatch.fnmatchcase(n, part)]
            else:
                names = [part]
            step += [posixpath.join(base, name) for name in names]
        found = [path for path in step if resolve_in_root(root, path) is not None][:_MAX_MATCHES]
    return found if found != ["/"] else []


def _names(root: Path, directory: str) -> list[str]:
    inside = resolve_in_root(root, directory)
    if inside is None:
        return []
    names: list[str] = []
    try:
        with os.scandir(inside) as entries:
            for entry in entries:
                names.append(entry.name)
                if len(names) >= _MAX_ENTRIES:
                    break
    except OSError:
        return []
    return sorted(names)
