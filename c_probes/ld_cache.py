# SPDX-License-Identifier: Apache-2.0
"""What the dynamic loader's own files say: ``/etc/ld.so.cache`` and the directories of ``/etc/ld.so.conf``.

Pure parsers of bytes and text. Layout of the cache: glibc ``sysdeps/generic/dl-cache.h`` (format 1.1, with
or without the older table in front).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

OLD_MAGIC = b"ld.so-1.7.0"
NEW_MAGIC = b"glibc-ld.so.cache1.1"
_OLD_HEADER, _OLD_ENTRY = 16, 12
_NEW_HEADER, _NEW_ENTRY = 48, 24
_BIG_ENDIAN = 3
MAX_PATH_BYTES = 4096

ABI_OF_FLAGS = {
    0x0003: "any",
    0x0303: "x86_64",
    0x0803: "x32",
    0x0903: "arm",
    0x0B03: "arm-soft-float",
    0x0A03: "aarch64",
}
"""Entry flags to the machine they are for, as ``uname -m`` names it (``any``: the only ABI of that
machine).
"""


class CacheError(ValueError):
    """The bytes are no loader cache of a known format, or end too early."""


@dataclass(frozen=True)
class CacheEntry:
    """One line of ``ldconfig -p``: SONAME, path, and the machine or ``flags 0x..``."""

    soname: str
    path: str
    abi: str


def parse_cache(data: bytes) -> Iterator[CacheEntry]:
    """The entries in file order, which is the order in which the loader tries entries of one SONAME.

    Entries that point outside the data are left out. Raises :class:`CacheError` for anything but format 1.1.
    """
    start = _new_table(data)
    endian_flag = data[start + 28] & 3
    order = ">" if endian_flag == _BIG_ENDIAN else "<"
    (count,) = struct.unpack_from(order + "I", data, start + 20)
    room = (len(data) - start - _NEW_HEADER) // _NEW_ENTRY
    if count > room:
        raise CacheError(f"the loader cache says {count} entries but has room for {room}")
    for index in range(count):
        at = start + _NEW_HEADER + index * _NEW_ENTRY
        flags, key, value = struct.unpack_from(order + "III", data, at)
        soname, path = _text(data, start + key), _text(data, start + value)
        if soname and path:
            yield CacheEntry(soname, path, ABI_OF_FLAGS.get(flags, f"flags {flags:#06x}"))


def _new_table(data: bytes) -> int:
    start = 0
    if data.startswith(OLD_MAGIC):
        if len(data) < _OLD_HEADER:
            raise CacheError("the loader cache ends within its header")
        (old_entries,) = struct.unpack_from("<I", data, 12)
        end = _OLD_HEADER + old_entries * _OLD_ENTRY
        start = (end + 7) & ~7
    if data[start : start + len(NEW_MAGIC)] != NEW_MAGIC:
        raise CacheError("no loader cache of format 1.1")
    if len(data) < start + _NEW_HEADER:
        raise CacheError("the loader cache ends within its header")
    return start


def _text(data: bytes, at: int) -> str | None:
    end = data.find(b"\0", at, at + MAX_PATH_BYTES)
    if end <= at:
        return None
    return data[at:end].decode("utf-8", "surrogateescape")


def parse_conf(text: str) -> Iterator[tuple[str, str]]:
    """The lines of an ``ld.so.conf``: ``("dir", path)`` or ``("include", pattern)``, in order.

    As ldconfig reads them: ``#`` starts a comment, several directories may stand on a line, ``hwcap`` lines
    are history, and a directory may carry an ``=type`` suffix.
    """
    for raw in text.splitlines():
        words = raw.partition("#")[0].replace(",", " ").replace(":", " ").split()
        if not words or words[0] == "hwcap":
            continue
        if words[0] == "include":
            yield from (("include", pattern) for pattern in words[1:])
            continue
        for word in words:
            directory = word.partition("=")[0].rstrip("/") or "/"
            if directory.startswith("/"):
                yield "dir", directory
