# SPDX-License-Identifier: Apache-2.0
"""Reads from an ELF file what tells whether it can be loaded here and what it exports. Never loads it.

Every count, offset and size comes from the file and is therefore checked against it; a hostile file costs
bounded time and memory and ends as :class:`ElfError` or as fewer symbols. Layouts: System V gABI, chapters
4 and 5.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

MAX_TABLE_BYTES = 32 << 20
MAX_SYMBOLS = 200_000
MAX_NAME_BYTES = 512
_MAX_HEADERS = 4096

PT_LOAD, PT_DYNAMIC = 1, 2
SHT_DYNSYM = 11
DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SONAME, DT_GNU_HASH = 4, 5, 6, 10, 14, 0x6FFFFEF5

MACHINES = {3: "i386", 40: "arm", 62: "x86_64", 183: "aarch64", 243: "riscv"}
"""e_machine to the name that ``uname -m`` uses for it (``arm`` stands for every armv7l and armv8l)."""


class ElfError(ValueError):
    """The file is no ELF file, or one whose tables lie outside of it."""


@dataclass(frozen=True)
class ElfFacts:
    """``bits`` 32 or 64; ``machine`` as in :data:`MACHINES` or ``machine 0x..``; ``symbols`` defined,
    sorted.
    """

    bits: int
    machine: str
    soname: str | None
    symbols: tuple[str, ...]


class _Format(NamedTuple):
    bits: int
    order: str

    def unpack(self, layout: str, data: bytes) -> tuple[int, ...]:
        return struct.unpack(self.order + layout, data)


class _Segment(NamedTuple):
    kind: int
    offset: int
    address: int
    size: int


class _File:
    """Bounded positioned reads of one open file."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self.size = os.fstat(fd).st_size

    def read(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or size > MAX_TABLE_BYTES or offset + size > self.size:
            raise ElfError(f"a table of {size} bytes at {offset} lies outside the file or is too large")
        parts = []
        while size > 0:
            part = os.pread(self._fd, size, offset)
            if not part:
                raise ElfError("the file became shorter while it was read")
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return b"".join(parts)


def read_elf(fd: int, prefixes: tuple[str, ...]) -> ElfFacts:
    """Class, machine, SONAME and the defined dynamic symbols whose names start with one of ``prefixes``.

    ``fd`` is a regular file open for reading. Raises :class:`ElfError`; I/O errors come as OSError.
    """
    file = _File(fd)
    if file.size < 52:
        raise ElfError("too short for an ELF file")
    ident = file.read(0, 16)
    if ident[:4] != b"\x7fELF" or ident[4] not in (1, 2) or ident[5] not in (1, 2):
        raise ElfError("no ELF file")
    form = _Format(32 if ident[4] == 1 else 64, "<" if ident[5] == 1 else ">")
    layout = "HHIIIIIHHHHHH" if form.bits == 32 else "HHIQQQIHHHHHH"
    header = form.unpack(layout, file.read(16, struct.calcsize("<" + layout)))
    kind, code, _, _, phoff, shoff, _, _, phentsize, phnum, shentsize, shnum, _ = header
    machine = MACHINES.get(code, f"machine {code:#x}")
    if kind != 3:
        raise ElfError("an ELF file, but no shared library")
    segments = _segments(file, form, phoff, phentsize, phnum)
    dynamic = _dynamic(file, form, segments)
    strings = _strings(file, segments, dynamic)
    soname = _name(strings, dynamic[DT_SONAME]) if DT_SONAME in dynamic else None
    entry = 16 if form.bits == 32 else 24
    table = _dynsym_by_section(file, form, shoff, shentsize, shnum)
    if table is None:
        table = _dynsym_by_hash(file, form, segments, dynamic, entry)
    wanted = tuple(prefix.encode() for prefix in prefixes)
    found = {name for name in _defined(form, table, strings) if name.startswith(wanted)}
    return ElfFacts(form.bits, machine, soname, tuple(sorted(n.decode("ascii", "replace") for n in found)))


def _segments(file: _File, form: _Format, offset: int, entry: int, count: int) -> list[_Segment]:
    layout = "IIIIIIII" if form.bits == 32 else "IIQQQQQQ"
    size = struct.calcsize("<" + layout)
    if entry < size or count > _MAX_HEADERS:
        raise ElfError("its program headers make no sense")
    data = file.read(offset, entry * count)
    segments = []
    for at in range(0, entry * count, entry):
        fields = form.unpack(layout, data[at : at + size])
        where = (fields[1], fields[2], fields[4]) if form.bits == 32 else (fields[2], fields[3], fields[5])
        segments.append(_Segment(fields[0], *where))
    return segments


def _dynamic(file: _File, form: _Format, segments: list[_Segment]) -> dict[int, int]:
    layout = "ii" if form.bits == 32 else "qq"
    unsigned = layout.upper()
    step = struct.calcsize("<" + layout)
    for segment in segments:
        if segment.kind != PT_DYNAMIC:
            continue
        data = file.read(segment.offset, min(segment.size, step * _MAX_HEADERS))
        entries: dict[int, int] = {}
        for at in range(0, len(data) - step + 1, step):
            tag, value = form.unpack(unsigned, data[at : at + step])
            if tag == 0:
                break
            entries.setdefault(tag, value)
        return entries
    return {}


def _offset_of(segments: list[_Segment], address: int) -> int:
    for segment in segments:
        if segment.kind == PT_LOAD and segment.address <= address < segment.address + segment.size:
            return segment.offset + address - segment.address
    raise ElfError(f"address {address:#x} is in no loaded segment")


def _strings(file: _File, segments: list[_Segment], dynamic: dict[int, int]) -> bytes:
    if DT_STRTAB not in dynamic or DT_STRSZ not in dynamic:
        return b""
    return file.read(_offset_of(segments, dynamic[DT_STRTAB]), dynamic[DT_STRSZ])


def _dynsym_by_section(file: _File, form: _Format, offset: int, entry: int, count: int) -> bytes | None:
    """The dynamic symbol table as the section headers give it; None where there are no usable ones
    (sstrip).
    """
    layout = "IIIIIIIIII" if form.bits == 32 else "IIQQQQIIQQ"
    size = struct.calcsize("<" + layout)
    if not offset or entry < size or not 0 < count <= _MAX_HEADERS:
        return None
    try:
        data = file.read(offset, entry * count)
        for at in range(0, entry * count, entry):
            fields = form.unpack(layout, data[at : at + size])
            if fields[1] == SHT_DYNSYM:
                return file.read(fields[4], fields[5])
    except ElfError:
        return None
    return None


def _dynsym_by_hash(file: _File, form: _Format, segments: list[_Segment], dynamic: dict[int, int], entry: int) -> bytes:
    """The dynamic symbol table as the loader sees it. Its length is only known through a hash table."""
    if DT_SYMTAB not in dynamic:
        return b""
    if DT_HASH in dynamic:
        count = form.unpack("II", file.read(_offset_of(segments, dynamic[DT_HASH]), 8))[1]
    elif DT_GNU_HASH in dynamic:
        count = _gnu_hash_count(file, form, _offset_of(segments, dynamic[DT_GNU_HASH]))
    else:
        return b""
    return file.read(_offset_of(segments, dynamic[DT_SYMTAB]), min(count, MAX_SYMBOLS) * entry)


def _gnu_hash_count(file: _File, form: _Format, offset: int) -> int:
    """Symbols covered by a GNU hash table: one past the end of the chain of the highest bucket."""
    buckets, first, words, _ = form.unpack("IIII", file.read(offset, 16))
    if buckets > MAX_SYMBOLS or words > MAX_SYMBOLS:
        raise ElfError("its hash table is too large")
    at = offset + 16 + words * (form.bits // 8)
    last = max(form.unpack(f"{buckets}I", file.read(at, buckets * 4)), default=0)
    if last < first:
        return first
    chains = at + buckets * 4
    for index in range(last, min(last + MAX_SYMBOLS, first + MAX_SYMBOLS)):
        if form.unpack("I", file.read(chains + (index - first) * 4, 4))[0] & 1:
            return index + 1
    raise ElfError("its hash table does not end")


def _defined(form: _Format, table: bytes, strings: bytes) -> Iterator[bytes]:
    """Names of the symbols that others can link to: defined here, global or weak."""
    if form.bits == 32:
        layout, name_at, info_at, section_at = "IIIBBH", 0, 3, 5
    else:
        layout, name_at, info_at, section_at = "IBBHQQ", 0, 1, 3
    step = struct.calcsize("<" + layout)
    usable = min(len(table) // step, MAX_SYMBOLS) * step
    for fields in struct.iter_unpack(form.order + layout, table[:usable]):
        if fields[section_at] and fields[info_at] >> 4 in (1, 2) and fields[name_at] < len(strings):
            end = strings.find(b"\0", fields[name_at], fields[name_at] + MAX_NAME_BYTES)
            if end > fields[name_at]:
                yield strings[fields[name_at] : end]


def _name(strings: bytes, at: int) -> str | None:
    end = strings.find(b"\0", at, at + MAX_NAME_BYTES)
    return strings[at:end].decode("utf-8", "replace") if 0 <= at < end else None
