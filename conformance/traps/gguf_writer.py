# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file of version 3, the same bytes for the same content: trap models are known by their sha256.

Facts: ggml docs/gguf.md; block layouts of ggml-quants.c (Q8_0: half scale amax / 127 and 32 int8; Q4_0: half scale
max / -8 and 16 bytes, the first 16 elements in the low nibbles).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray

Value = Union[int, float, str, bool, Sequence[int], Sequence[float], Sequence[str], Sequence[bool]]
F32 = NDArray[np.float32]

_U32, _I32, _F32, _BOOL, _STRING, _ARRAY = 4, 5, 6, 7, 8, 9
_KINDS = {"F32": 0, "F16": 1, "Q4_0": 2, "Q8_0": 8}
_ALIGNMENT = 32
_BLOCK = 32


def encode_gguf(keys: Mapping[str, Value], tensors: Mapping[str, tuple[str, F32]]) -> bytes:
    """A whole file. A tensor is its type (F32, F16, Q8_0, Q4_0) and its values [N, K] or [K]; K in blocks of 32."""
    table, data, offset = [], [], 0
    for name, (kind, values) in tensors.items():
        raw = _ENCODERS[kind](np.ascontiguousarray(values, np.float32))
        dims = values.shape[::-1]
        table.append(_string(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, _KINDS[kind], offset))
        data.append(raw + bytes(-len(raw) % _ALIGNMENT))
        offset += len(data[-1])
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(keys))
    head += b"".join(_string(name) + _value(value) for name, value in keys.items()) + b"".join(table)
    return head + bytes(-len(head) % _ALIGNMENT) + b"".join(data)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Value) -> bytes:
    if isinstance(value, (bool, int, float, str)):
        return struct.pack("<I", _type_of(value)) + _payload(value)
    return struct.pack("<IIQ", _ARRAY, _type_of(value[0], in_array=True), len(value)) + b"".join(
        _payload(item, in_array=True) for item in value
    )


def _type_of(value: Any, *, in_array: bool = False) -> int:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _I32 if in_array else _U32
    return _F32 if isinstance(value, float) else _STRING


def _payload(value: Any, *, in_array: bool = False) -> bytes:
    if isinstance(value, str):
        return _string(value)
    kind = _type_of(value, in_array=in_array)
    return struct.pack({_BOOL: "<?", _U32: "<I", _I32: "<i", _F32: "<f"}[kind], value)


def _half(values: F32) -> bytes:
    return values.astype("<f2").tobytes()


def _q8_0(values: F32) -> bytes:
    blocks = values.reshape(-1, _BLOCK)
    scale = np.abs(blocks).max(axis=1) / np.float32(127)
    rows = np.empty(len(blocks), np.dtype([("d", "<f2"), ("q", "i1", (_BLOCK,))]))
    rows["d"] = scale
    rows["q"] = np.rint(blocks * _inverse(scale)[:, None])
    return rows.tobytes()


def _q4_0(values: F32) -> bytes:
    blocks = values.reshape(-1, _BLOCK)
    largest = blocks[np.arange(len(blocks)), np.abs(blocks).argmax(axis=1)]
    scale = largest / np.float32(-8)
    q = np.clip(np.floor(blocks * _inverse(scale)[:, None] + np.float32(8.5)), 0, 15).astype(np.uint8)
    rows = np.empty(len(blocks), np.dtype([("d", "<f2"), ("q", "u1", (_BLOCK // 2,))]))
    rows["d"] = scale
    rows["q"] = q[:, : _BLOCK // 2] | (q[:, _BLOCK // 2 :] << 4)
    return rows.tobytes()


def _inverse(scale: F32) -> F32:
    inverse: F32 = np.where(scale == 0, np.float32(0), 1 / np.where(scale == 0, np.float32(1), scale))
    return inverse


_ENCODERS = {"F32": lambda values: values.astype("<f4").tobytes(), "F16": _half, "Q8_0": _q8_0, "Q4_0": _q4_0}
