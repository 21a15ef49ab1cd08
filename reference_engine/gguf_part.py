# SPDX-License-Identifier: Apache-2.0
"""One GGUF file on disk: map it, tell what else it might be, read its header."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from reference_engine.gguf_cursor import Cursor, aligned
from reference_engine.gguf_errors import BIG_ENDIAN, NOT_GGUF, TRUNCATED, UNREADABLE, VERSION, GgufError, Limits, quoted
from reference_engine.gguf_layout import (
    LEAST_TENSOR_BYTES,
    check_ranges,
    overlaps,
    read_alignment,
    read_tensor_table,
)
from reference_engine.gguf_tensor import GgufTensor
from reference_engine.gguf_values import LEAST_KEY_BYTES, Metadata, read_metadata

MAGIC = b"GGUF"
VERSIONS = (2, 3)  # alike on disk in little-endian order; 3 only added the big-endian form
HEADER_BYTES = 24

# What people have in place of a model, by its first bytes.
_OTHER_FILES: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git LFS pointer, not the model; fetch it with: git lfs pull"),
    (b"<!doctype", "an HTML page, not the model: the download address led to a web page"),
    (b"<html", "an HTML page, not the model: the download address led to a web page"),
    (b"<?xml", "an XML document, most likely the error message of a download server"),
    (b"{", "a JSON document, most likely the error message of a download server"),
    (b"pk\x03\x04", "a ZIP archive (a PyTorch checkpoint is one); unpack or convert it"),
    (b"\x1f\x8b", "gzip-compressed; unpack it first"),
    (b"\xfd7zxz", "xz-compressed; unpack it first"),
    (b"lmgg", "a GGML file from before GGUF; convert it with llama.cpp"),
    (b"fmgg", "a GGMF file from before GGUF; convert it with llama.cpp"),
    (b"tjgg", "a GGJT file from before GGUF; convert it with llama.cpp"),
    (b"rknn", "a compiled RKNN model; a GGUF file is needed"),
    (b"\x7felf", "an ELF program or library"),
)


@dataclass(frozen=True)
class GgufPart:
    """One file, read: the whole model or one part of a split set."""

    path: Path
    version: int
    metadata: Metadata
    tensors: tuple[GgufTensor, ...]
    alignment: int
    header_bytes: int
    file_size: int
    warnings: tuple[GgufError, ...]
    mapped: mmap.mmap

    def close(self) -> None:
        """Unmap the file. Arrays that still look into it keep it mapped until they are gone."""
        with contextlib.suppress(BufferError):
            self.mapped.close()


def read_part(path: Path, *, header_only: bool, limits: Limits) -> GgufPart:
    """Map and read one file. Every GgufError carries ``path``."""
    try:
        mapped = _map(path)
        try:
            return _read(path, mapped, header_only=header_only, limits=limits)
        except BaseException:
            mapped.close()
            raise
    except GgufError as error:
        error.path = path
        raise


def _map(path: Path) -> mmap.mmap:
    try:
        # A FIFO or a device must be refused, not waited for.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise GgufError(UNREADABLE, f"{quoted(path, 200)} cannot be opened: {reason}") from None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            kind = "a directory" if stat.S_ISDIR(status.st_mode) else "a device, socket or pipe"
            raise GgufError(UNREADABLE, f"{quoted(path, 200)} is {kind}; a regular file is needed")
        if status.st_size == 0:
            raise GgufError(NOT_GGUF, "the file is empty: the download or the copy never began", 0)
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError, OverflowError) as error:
        # A 32-bit process cannot map a file of several gigabytes.
        raise GgufError(UNREADABLE, f"{quoted(path, 200)} cannot be mapped into memory: {error}") from None
    finally:
        os.close(handle)


def _read(path: Path, mapped: mmap.mmap, *, header_only: bool, limits: Limits) -> GgufPart:
    cursor = Cursor(mapped, limits)
    version = _check_magic_and_version(cursor)
    tensor_count = cursor.count("tensor count", item_bytes=LEAST_TENSOR_BYTES, limit=limits.tensors)
    key_count = cursor.count("key count", item_bytes=LEAST_KEY_BYTES, limit=limits.keys)
    metadata = read_metadata(cursor, key_count)
    alignment = read_alignment(metadata)
    infos = read_tensor_table(cursor, tensor_count, alignment)
    data_start = aligned(cursor.position, alignment)
    if not header_only:
        check_ranges(infos, data_start, cursor.size, alignment)
    warnings = overlaps(infos)
    for warning in warnings:
        warning.path = path
    tensors = tuple(
        GgufTensor(i.name, i.dims, i.type, i.n_bytes, data_start + i.offset, i.header_at, path, mapped) for i in infos
    )
    return GgufPart(path, version, metadata, tensors, alignment, cursor.position, cursor.size, warnings, mapped)


def _check_magic_and_version(cursor: Cursor) -> int:
    head = cursor.data[:HEADER_BYTES]
    if head[:4] != MAGIC:
        raise GgufError(NOT_GGUF, _what_else(head), 0)
    if len(head) < HEADER_BYTES:
        raise GgufError(
            TRUNCATED, f"the file ends inside the header: {HEADER_BYTES} bytes expected, {len(head)} there", len(head)
        )
    cursor.skip(4, "magic")
    at = cursor.position
    version = cursor.u32("version")
    swapped = int.from_bytes(head[4:8], "big")
    if version & 0xFFFF == 0 and swapped in (1, *VERSIONS):
        raise GgufError(
            BIG_ENDIAN,
            f"the file is in big-endian byte order (version {swapped}); only little-endian files are supported",
            at,
        )
    if version not in VERSIONS:
        raise GgufError(VERSION, f"version is {version}; versions 2 and 3 are supported", at)
    return version


def _what_else(head: bytes) -> str:
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    for prefix, what in _OTHER_FILES:
        if start.startswith(prefix):
            return f"the file is {what}"
    if len(head) >= 9 and head[8:9] == b"{" and head[7] == 0:
        return "the file is a safetensors file; convert it with llama.cpp (convert_hf_to_gguf.py)"
    if not head.strip(b"\0"):
        return "the file begins with zeros: a download that reserved its space and never filled it"
    return f"the file begins with {quoted(head[:4].hex(' '))}, not with the letters GGUF"
