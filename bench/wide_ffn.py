# SPDX-License-Identifier: Apache-2.0
"""A model whose feed-forward layers are wider by zeros: the same text, from a target that costs more.

A tiny target costs so little that what the interpreter does for a drafted token is half of it. Rows of zeros in gate
and up, and zeros behind each row of down, add work and change no logit, so that a drafter trained on the tiny target is
right as often as before.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING

from reference_engine.gguf_file import open_gguf

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor

_U32, _ARRAY = 4, 9
"""Types of values (gguf.md of the ggml project)."""


def widen(source: Path, target: Path, factor: int) -> None:
    """Write ``source`` with ``factor`` times as many elements between up and down of every layer.

    ValueError for a model without feed_forward_length as 32-bit numbers. Zero bytes are zeros in every type of GGUF.
    """
    with open_gguf(source) as file:
        tensors = list(file.tensors.values())
        begin = min(tensor.data_at for tensor in tensors)
        header = bytearray(source.read_bytes()[:begin])
        key = f"{file.architecture}.feed_forward_length"
        at = file.metadata.offset(key)
        if at is None:
            raise ValueError(f"{source.name} has no {key}")
        _multiply(header, at, factor)
        body = bytearray()
        for tensor in tensors:
            kind = tensor.name.rsplit(".", 2)[-2]
            data, dims = _widened(tensor, kind, factor)
            row = tensor.header_at + 8 + len(tensor.name.encode()) + 4
            struct.pack_into(f"<{len(dims)}Q", header, row, *dims)
            struct.pack_into("<Q", header, row + 8 * len(dims) + 4, len(body))
            body += data + bytes(-len(data) % file.alignment)
    target.write_bytes(bytes(header + body))


def _widened(tensor: GgufTensor, kind: str, factor: int) -> tuple[bytes, tuple[int, ...]]:
    raw, (k, *rest) = tensor.raw(), tensor.dims
    if kind in ("ffn_gate", "ffn_up"):
        return raw.tobytes() + bytes((factor - 1) * raw.size), (k, rest[0] * factor)
    if kind == "ffn_down":
        zeros = bytes((factor - 1) * raw.shape[1])
        return b"".join(row.tobytes() + zeros for row in raw), (k * factor, *rest)
    return raw.tobytes(), tensor.dims


def _multiply(header: bytearray, at: int, factor: int) -> None:
    """The value of the key at ``at``: a number, or an array of them."""
    (length,) = struct.unpack_from("<Q", header, at)
    at += 8 + length
    (kind,) = struct.unpack_from("<I", header, at)
    count, at = 1, at + 4
    if kind == _ARRAY:
        kind, count = struct.unpack_from("<IQ", header, at)
        at += 12
    if kind not in (_U32, _U32 + 1):
        raise ValueError("feed_forward_length is not of 32 bits")
    values = struct.unpack_from(f"<{count}I", header, at)
    struct.pack_into(f"<{count}I", header, at, *(value * factor for value in values))
