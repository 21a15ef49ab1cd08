# SPDX-License-Identifier: Apache-2.0
"""One librknnrt or librkllmrt on disk: size, sha256, version text, machine and exports. Read, never
loaded.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from c_probes.elf import ElfError, read_elf

MAX_FILE_BYTES = 512 << 20
"""Librknnrt 2.3.2 has about 7 MB; a file beyond this bound is named, but not hashed."""

_CHUNK = 1 << 20
_MARK_BYTES = 200
_MAX_TEXTS = 32
_SYMBOL_PREFIXES = ("rknn_", "rkllm_", "get_total_npu_memory")
_MARK = re.compile(rb"(?:librknnrt|rkllm-runtime) version: ?[ -~]{0,160}")
_NUMBERS = re.compile(r"version: ?v?(\d{1,9}(?:\.\d{1,9}){1,3})")
_IN_BRACKETS = re.compile(r"\(([^)]*)\)?")
_OWN_MARK = {"librknnrt": "librknnrt version", "librkllmrt": "rkllm-runtime version"}


@dataclass(frozen=True)
class LibraryFile:
    """One library file. ``path`` and ``real_path`` are as a process inside the root sees them.

    ``version_text`` is the text inside the file, such as ``librknnrt version: 2.3.2
    (429f97ae6b@2025-04-09T..)``, and ``version`` its numbers, such as ``(2, 3, 2)``. ``elf_class`` is 32 or
    64, ``elf_machine`` as ``uname -m`` has it. ``symbols`` are its exported ``rknn_*`` and ``rkllm_*``
    names, sorted. ``found_by`` says where the search met it. ``on_loader_path``: dlopen by name would
    consider it; ``taken``: it is the one that dlopen takes; every other one on the path carries
    ``shadowed_by``. What could not be read is None or empty and ``problem`` says why.
    """

    path: str
    real_path: str
    kind: str
    size: int | None = None
    sha256: str | None = None
    version_text: str | None = None
    version: tuple[int, ...] | None = None
    is_mock: bool = False
    elf_class: int | None = None
    elf_machine: str | None = None
    soname: str | None = None
    symbols: tuple[str, ...] = ()
    found_by: str = "named"
    on_loader_path: bool = False
    taken: bool = False
    shadowed_by: str | None = None
    problem: str | None = None

    @property
    def build(self) -> str | None:
        """What stands in brackets after the version: commit and date of the vendor's, ``mock ...`` of a
        mock.
        """
        match = _IN_BRACKETS.search(self.version_text or "")
        return match.group(1) if match else None


def parse_version(text: str) -> tuple[int, ...] | None:
    """``librknnrt version: 2.0.0b0 (..)`` gives ``(2, 0, 0)``; None where there is no number."""
    match = _NUMBERS.search(text)
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def says_mock(version_text: str) -> bool:
    """Whether the text in brackets has the word ``mock``."""
    match = _IN_BRACKETS.search(version_text)
    return match is not None and re.search(r"\bmock\b", match.group(1)) is not None


def kind_of(name: str) -> str:
    """``librkllmrt`` or ``librknnrt``, by file name; an odd name counts as librknnrt."""
    return "librkllmrt" if "rkllm" in name else "librknnrt"


def describe_library(file: Path, *, shown_as: str | None = None, kind: str | None = None) -> LibraryFile:
    """Reads one file. Never raises for what the file is; ``problem`` tells.

    ``shown_as`` is the path to write into the record when ``file`` lies under a root other than ``/``.
    """
    shown = shown_as or str(file)
    record = LibraryFile(path=shown, real_path=shown, kind=kind or kind_of(file.name))
    try:
        # Non-blocking, so that a FIFO of that name does not hold the run.
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        return replace(record, problem=f"cannot be opened: {error.strerror}")
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return replace(record, problem="not a regular file")
        record = replace(record, size=found.st_size)
        return _read(fd, record)
    except OSError as error:
        return replace(record, problem=f"cannot be read: {error.strerror}")
    finally:
        os.close(fd)


def _read(fd: int, record: LibraryFile) -> LibraryFile:
    assert record.size is not None
    if record.size > MAX_FILE_BYTES:
        return replace(record, problem=f"larger than {MAX_FILE_BYTES >> 20} MiB; not looked into")
    digest, texts = _scan(fd)
    text = _best(texts, record.kind)
    record = replace(
        record,
        sha256=digest,
        version_text=text,
        version=None if text is None else parse_version(text),
        is_mock=text is not None and says_mock(text),
    )
    try:
        elf = read_elf(fd, _SYMBOL_PREFIXES)
    except ElfError as error:
        return replace(record, problem=str(error))
    return replace(record, elf_class=elf.bits, elf_machine=elf.machine, soname=elf.soname, symbols=elf.symbols)


def _scan(fd: int) -> tuple[str, list[str]]:
    """The sha256 of the whole file and the version texts in it, in one pass."""
    digest = hashlib.sha256()
    texts: list[str] = []
    window = b""
    for chunk in _chunks(fd):
        digest.update(chunk)
        window += chunk
        # A text that touches the end of the window may go on; it is looked at again with the next chunk.
        limit = max(0, len(window) - _MARK_BYTES)
        texts += _texts(window, limit)
        window = window[limit:]
        if len(texts) > _MAX_TEXTS:
            texts = texts[:_MAX_TEXTS]
    return digest.hexdigest(), texts + _texts(window, len(window))


def _texts(window: bytes, limit: int) -> list[str]:
    return [match.group().decode("ascii") for match in _MARK.finditer(window) if match.start() < limit]


def _chunks(fd: int) -> Iterator[bytes]:
    offset = 0
    while offset < MAX_FILE_BYTES:
        chunk = b""
        while len(chunk) < _CHUNK:
            part = os.pread(fd, _CHUNK - len(chunk), offset + len(chunk))
            if not part:
                break
            chunk += part
        if not chunk:
            return
        offset += len(chunk)
        yield chunk


def _best(texts: list[str], kind: str) -> str | None:
    """The text that speaks of this library and has a number; a format string such as ``version: %s`` has
    none.
    """
    own = [t for t in texts if t.startswith(_OWN_MARK[kind]) and parse_version(t)]
    rest = [t for t in texts if parse_version(t)]
    return next((t.strip() for t in [*own, *rest]), None)
