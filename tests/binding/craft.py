# SPDX-License-Identifier: Apache-2.0
"""Writes loader caches and ELF files field by field, right ones and wrong ones. Shares no code with the
readers.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass


def ld_cache(
    entries: Sequence[tuple[int, str, str]],
    *,
    order: str = "<",
    old_entries: int | None = None,
    count: int | None = None,
    magic: bytes = b"glibc-ld.so.cache1.1",
) -> bytes:
    """A cache of ``(flags, soname, path)``. ``old_entries`` puts an old-format table with so many entries
    in front.

    ``count`` overrides the number of entries that the header claims.
    """
    front = b""
    if old_entries is not None:
        front = b"ld.so-1.7.0\0" + struct.pack("<I", old_entries) + bytes(12 * old_entries)
        front += bytes(-len(front) % 8)
    strings = b""
    table = b""
    base = 48 + 24 * len(entries)
    for flags, soname, path in entries:
        key = base + len(strings)
        strings += soname.encode() + b"\0"
        value = base + len(strings)
        strings += path.encode() + b"\0"
        table += struct.pack(order + "iIIIQ", flags, key, value, 0, 0)
    endian = 3 if order == ">" else 2
    claimed = len(entries) if count is None else count
    header = magic + struct.pack(order + "II", claimed, len(strings)) + bytes([endian, 0, 0, 0]) + bytes(16)
    return front + header + table + strings


@dataclass(frozen=True)
class Symbol:
    """One dynamic symbol: ``bind`` 0 local, 1 global, 2 weak; ``section`` 0 means undefined."""

    name: str
    bind: int = 1
    section: int = 1


def shared_library(
    symbols: Sequence[Symbol] = (),
    *,
    bits: int = 64,
    order: str = "<",
    machine: int = 183,
    soname: str | None = "librknnrt.so",
    find_by: str = "sections",
    kind: int = 3,
    data: bytes = b"",
) -> bytes:
    """A shared library that holds nothing but headers, a dynamic symbol table and ``data``.

    ``find_by`` says through what the length of the symbol table can be known: ``sections``, ``hash``,
    ``gnu_hash`` or ``nothing``. Addresses equal file offsets.
    """
    wide = bits == 64
    header_size, ph_size, sh_size = (64, 56, 64) if wide else (52, 32, 40)
    strings = b"\0"
    offsets = []
    for symbol in symbols:
        offsets.append(len(strings))
        strings += symbol.name.encode() + b"\0"
    soname_at = len(strings)
    strings += (soname or "").encode() + b"\0"

    table = bytes(24 if wide else 16)
    for symbol, at in zip(symbols, offsets, strict=True):
        info = symbol.bind << 4 | 2
        if wide:
            table += struct.pack(order + "IBBHQQ", at, info, 0, symbol.section, 0x1000, 8)
        else:
            table += struct.pack(order + "IIIBBH", at, 0x1000, 8, info, 0, symbol.section)

    count = len(symbols) + 1
    if find_by == "hash":
        hashes = struct.pack(order + "II", 1, count) + struct.pack(order + "I", 0) + bytes(4 * count)
    elif find_by == "gnu_hash":
        chain = b"".join(struct.pack(order + "I", 2 if i < count - 1 else 3) for i in range(1, count))
        bucket = 1 if count > 1 else 0
        hashes = struct.pack(order + "IIII", 1, 1, 1, 0) + bytes(bits // 8) + struct.pack(order + "I", bucket) + chain
    else:
        hashes = b""

    at_strings = header_size + 2 * ph_size
    at_table = at_strings + len(strings) + -(at_strings + len(strings)) % 8
    at_hashes = at_table + len(table)
    at_dynamic = at_hashes + len(hashes) + -len(hashes) % 8
    tags = [(5, at_strings), (10, len(strings)), (6, at_table)]
    if soname is not None:
        tags.append((14, soname_at))
    if find_by == "hash":
        tags.append((4, at_hashes))
    if find_by == "gnu_hash":
        tags.append((0x6FFFFEF5, at_hashes))
    dynamic = b"".join(struct.pack(order + ("QQ" if wide else "II"), *tag) for tag in [*tags, (0, 0)])
    at_data = at_dynamic + len(dynamic)
    at_sections = at_data + len(data) if find_by == "sections" else 0
    end = at_data + len(data)

    def program(kind: int, offset: int, size: int) -> bytes:
        if wide:
            return struct.pack(order + "IIQQQQQQ", kind, 4, offset, offset, offset, size, size, 8)
        return struct.pack(order + "IIIIIIII", kind, offset, offset, offset, size, size, 4, 4)

    def section(kind: int, offset: int, size: int, entry: int) -> bytes:
        layout = "IIQQQQIIQQ" if wide else "IIIIIIIIII"
        return struct.pack(order + layout, 0, kind, 2, offset, offset, size, 0, 1, 8, entry)

    ident = b"\x7fELF" + bytes([2 if wide else 1, 1 if order == "<" else 2, 1]) + bytes(9)
    sections = b""
    if find_by == "sections":
        sections = section(0, 0, 0, 0) + section(11, at_table, len(table), 24 if wide else 16)
    header = ident + struct.pack(
        order + ("HHIQQQIHHHHHH" if wide else "HHIIIIIHHHHHH"),
        *(kind, machine, 1, 0, header_size, at_sections, 0, header_size, ph_size, 2),
        *(sh_size, len(sections) // sh_size, 0),
    )
    body = header + program(1, 0, end) + program(2, at_dynamic, len(dynamic)) + strings
    body += bytes(at_table - len(body)) + table + hashes
    body += bytes(at_dynamic - len(body)) + dynamic + data + sections
    return body
