# SPDX-License-Identifier: Apache-2.0
"""Takes personal data out of a report: host name, user names, home paths, serial numbers, MAC addresses, machine ids.

Two ways together: shapes (a MAC address looks like one wherever it stands) and names (what this machine and its users
are called, and those of a pictured board, whole words only). ``--full`` is the way around it; nothing else is.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import socket
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

_SHAPES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?<![0-9A-Fa-f:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f:])"), "<mac>"),
    (re.compile(r"(?<![0-9A-Fa-f-])(?:[0-9A-Fa-f]{2}-){5}[0-9A-Fa-f]{2}(?![0-9A-Fa-f-])"), "<mac>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "<uuid>"),
    (re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]{32}(?![0-9A-Za-z])"), "<id>"),
    (re.compile(r"(/home/|/Users/|/media/|/run/media/|/var/home/)(?!<user>)[^/\s\"',:;)]+"), r"\1<user>"),
    (
        re.compile(r"(?i)(\bserial(?:[ _-]?(?:no|number))?\s{0,8}[:=]\s{0,8})(?!<serial>)[0-9A-Za-z-]{4,64}"),
        r"\1<serial>",
    ),
    (re.compile(r"(?i)((?:host-?name|nodename)\s{0,8}[:=]\s{0,8})(?!<host>)[\w.-]{1,255}"), r"\1<host>"),
    (
        re.compile(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,4}\.[A-Za-z]{2,10}\b"),
        "<address>",
    ),
)
_SHAPELESS = re.compile(r"[\w. ]{0,31}")
"""Text with none of the signs that a shape above has, and too short for an id: most keys and words of a report."""
COMMON = frozenset(
    {
        *("root", "localhost", "localdomain", "linux", "kernel", "board", "user", "admin", "test", "none", "unknown"),
        *("npu", "cpu", "ddr", "gpu", "soc", "rockchip", "rknpu", "rocket", "vendor", "mainline", "driver", "memory"),
        *("debian", "ubuntu", "armbian", "container", "docker"),
        *("radxa", "rock", "orangepi", "pi", "firefly", "khadas", "odroid", "luckfox", "linaro", "pico", "turing"),
    }
)
"""Names too ordinary to identify anyone, users of vendors' images among them: without them a report would be spoilt."""
_KEPT = ("board.", "soc.")
"""Facts made by the vendor of the board. A host may be named after them; the facts stay."""


@dataclass(frozen=True)
class Names:
    """What the machine and its users are called. Empty ones and ordinary words are ignored."""

    hosts: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    serials: tuple[str, ...] = ()

    def __or__(self, other: Names) -> Names:
        return Names(self.hosts + other.hosts, self.users + other.users, self.serials + other.serials)

    def patterns(self) -> tuple[tuple[re.Pattern[str], str], ...]:
        rows = []
        for names, mark in ((self.serials, "<serial>"), (self.hosts, "<host>"), (self.users, "<user>")):
            kept = sorted(
                {name for name in names if len(name) > 1 and name.lower() not in COMMON}, key=len, reverse=True
            )
            if kept:
                words = "|".join(re.escape(name) for name in kept)
                rows.append((re.compile(rf"(?<![\w.-])(?:{words})(?![\w-])"), mark))
        return tuple(rows)


def redact(report: dict[str, Any], names: Names | None = None) -> dict[str, Any]:
    """A copy of ``report`` with personal data replaced by ``<host>``, ``<user>``, ``<serial>``, ``<mac>``, ``<id>``.

    ``names`` defaults to those of the machine this runs on. Doing it twice changes nothing.
    """
    patterns = (names if names is not None else names_here()).patterns()
    result = {}
    for key, value in report.items():
        if key == "facts" and isinstance(value, dict):
            result[key] = {
                name: _cleaned(fact, () if str(name).startswith(_KEPT) else patterns) for name, fact in value.items()
            }
        else:
            result[key] = _cleaned(value, patterns)
    return result


def redact_text(text: str, names: Names) -> str:
    """One text, as ``redact`` would have it."""
    return _clean(text, names.patterns())


def _cleaned(value: Any, patterns: Iterable[tuple[re.Pattern[str], str]]) -> Any:
    if isinstance(value, str):
        return _clean(value, patterns)
    if isinstance(value, dict):
        return {_clean(str(key), patterns): _cleaned(item, patterns) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_cleaned(item, patterns) for item in value]
    return value


def _clean(text: str, patterns: Iterable[tuple[re.Pattern[str], str]]) -> str:
    shapes = () if _SHAPELESS.fullmatch(text) else _SHAPES
    for pattern, mark in (*shapes, *patterns):
        text = pattern.sub(mark, text)
    return text


@lru_cache(maxsize=1)
def names_here() -> Names:
    """Names of this machine: host, users with a home of their own, and serial numbers where they are readable."""
    hosts = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    users = {os.environ.get(name, "") for name in ("USER", "LOGNAME", "SUDO_USER")}
    with contextlib.suppress(OSError):  # a user database that cannot be listed names nobody
        users |= {entry.pw_name for entry in pwd.getpwall() if 1000 <= entry.pw_uid < 65000}
    serials = {_first_word(path) for path in ("/etc/machine-id", "/proc/device-tree/serial-number")}
    return Names(tuple(sorted(hosts - {""})), tuple(sorted(users - {""})), tuple(sorted(serials - {""})))


def names_of(root: Path) -> Names:
    """Names of the board whose files lie below ``root``, with those of this machine. A picture may hold anything."""
    if os.path.realpath(root) == "/":
        return names_here()
    host = _first_word(root / "etc/hostname")
    users = []
    for line in _small_file(root / "etc/passwd").splitlines():
        fields = line.split(":")
        if len(fields) >= 3 and re.fullmatch(r"[0-9]{4,5}", fields[2]) and 1000 <= int(fields[2]) < 65000:
            users.append(fields[0])
    serials = (_first_word(root / "etc/machine-id"), _first_word(root / "proc/device-tree/serial-number"))
    pictured = Names(tuple({host, host.partition(".")[0]} - {""}), tuple(users), tuple(set(serials) - {""}))
    return names_here() | pictured


def _first_word(path: Path | str) -> str:
    words = _small_file(Path(path))[:256].split()
    return words[0] if words else ""


def _small_file(path: Path) -> str:
    """The start of a plain file as text, NUL as a blank; empty where there is none. Never waits for a FIFO."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        data = os.read(handle, 65536) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
    except OSError:
        return ""
    finally:
        os.close(handle)
    return data.replace(b"\0", b" ").decode("utf-8", "replace")
