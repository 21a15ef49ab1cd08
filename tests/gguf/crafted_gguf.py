# SPDX-License-Identifier: Apache-2.0
"""Writes GGUF files field by field, wrong ones too. Shares no code with the reader: type numbers stand here again."""

from __future__ import annotations

import struct
from collections.abc import Sequence

U8, I8, U16, I16, U32, I32, F32, BOOL, STRING, ARRAY, U64, I64, F64 = range(13)
FORMATS = {
    U8: "<B",
    I8: "<b",
    U16: "<H",
    I16: "<h",
    U32: "<I",
    I32: "<i",
    F32: "<f",
    BOOL: "<B",
    U64: "<Q",
    I64: "<q",
    F64: "<d",
}

GGML_F32, GGML_F16, GGML_Q4_0, GGML_Q8_0 = 0, 1, 2, 8


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


def string(text: str | bytes, length: int | None = None) -> bytes:
    """A length and the bytes; ``length`` writes another one than is true."""
    raw = text.encode() if isinstance(text, str) else text
    return u64(len(raw) if length is None else length) + raw


def scalar(kind: int, value: float) -> bytes:
    return struct.pack(FORMATS[kind], value)


def items(kind: int, values: Sequence[object]) -> bytes:
    """The payload of an array of ``kind``: strings, or numbers."""
    if kind == STRING:
        return b"".join(string(value) for value in values)  # type: ignore[arg-type]
    return b"".join(struct.pack(FORMATS[kind], value) for value in values)


def array(kind: int, payload: bytes, count: int) -> bytes:
    return u32(kind) + u64(count) + payload


def key(name: str | bytes, kind: int, payload: bytes, length: int | None = None) -> bytes:
    """One key with its value; ``length`` writes another key length than is true."""
    return string(name, length) + u32(kind) + payload


def key_u32(name: str, value: int) -> bytes:
    return key(name, U32, u32(value))


def key_f32(name: str, value: float) -> bytes:
    return key(name, F32, scalar(F32, value))


def key_text(name: str, value: str) -> bytes:
    return key(name, STRING, string(value))


def key_array(name: str, kind: int, values: Sequence[object]) -> bytes:
    return key(name, ARRAY, array(kind, items(kind, values), len(values)))


def tensor(
    name: str | bytes, dims: Sequence[int], kind: int = GGML_F32, offset: int = 0, n_dims: int | None = None
) -> bytes:
    """One row of the tensor table; ``n_dims`` writes another count than is true."""
    count = len(dims) if n_dims is None else n_dims
    return string(name) + u32(count) + b"".join(u64(dim) for dim in dims) + u32(kind) + u64(offset)


def header(tensors: int, keys: int, version: int = 3, magic: bytes = b"GGUF") -> bytes:
    return magic + u32(version) + u64(tensors) + u64(keys)


def pad(raw: bytes, alignment: int = 32) -> bytes:
    return raw + bytes(-len(raw) % alignment)


def gguf(keys: Sequence[bytes] = (), tensors: Sequence[bytes] = (), data: bytes = b"", alignment: int = 32) -> bytes:
    """A whole file: header, keys, tensor table, padding, data."""
    head = header(len(tensors), len(keys)) + b"".join(keys) + b"".join(tensors)
    return pad(head, alignment) + data if tensors else head
