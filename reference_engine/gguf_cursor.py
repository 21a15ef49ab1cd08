# SPDX-License-Identifier: Apache-2.0
"""Reads fixed fields and lengths from a mapped file; every length is held against the bytes left before it is used."""

from __future__ import annotations

import mmap
import struct
from array import array

from reference_engine.gguf_errors import EMPTY, ENCODING, LENGTH, LIMIT, TRUNCATED, GgufError, Limits, quoted

_U32 = struct.Struct("<I")
_U64 = struct.Struct("<Q")
_I64_MAX = (1 << 63) - 1

STRIDE = 64
"""One position is kept for this many strings of an array; those between are found by walking."""


class Cursor:
    """A position in a mapped file. All integers are Python's own: nothing wraps."""

    def __init__(self, data: mmap.mmap, limits: Limits) -> None:
        self.data = data
        self.size = len(data)
        self.limits = limits
        self.position = 0
        self.strings = 0
        self.inner_arrays = 0
        self.key_bytes = 0

    @property
    def left(self) -> int:
        return self.size - self.position

    def skip(self, count: int, field: str) -> int:
        """Step over ``count`` bytes and return where they began. NPU-F015 where the file ends before."""
        start = self.position
        if count > self.left:
            raise GgufError(
                TRUNCATED,
                f"the file ends inside {field}: {count} bytes expected, {self.left} left of {self.size}",
                start,
            )
        self.position += count
        return start

    def u32(self, field: str) -> int:
        (value,) = _U32.unpack_from(self.data, self.skip(4, field))
        return int(value)

    def u64(self, field: str) -> int:
        (value,) = _U64.unpack_from(self.data, self.skip(8, field))
        return int(value)

    def count(self, field: str, item_bytes: int, limit: int | None = None) -> int:
        """A u64 that counts items of at least ``item_bytes`` each. NPU-F010 if they cannot fit, NPU-F013 over limit."""
        start = self.position
        value = self.u64(field)
        if value * item_bytes > self.left:
            raise GgufError(
                LENGTH,
                f"{field} is {value}, which needs at least {value * item_bytes} bytes; {self.left} are left",
                start,
            )
        if limit is not None and value > limit:
            raise GgufError(LIMIT, f"{field} is {value}; this reader takes at most {limit}", start)
        return value

    def name(self, field: str, longest: int) -> str:
        """A key or tensor name: not empty, UTF-8, printable, at most ``longest`` bytes.

        The budget for all names together keeps a file of a hundred megabytes of keys from becoming objects.
        """
        start = self.position
        length = self.count(f"length of {field}", 1, longest)
        if length == 0:
            raise GgufError(EMPTY, f"{field} is empty", start)
        self.key_bytes += length
        if self.key_bytes > self.limits.all_key_bytes:
            raise GgufError(LIMIT, f"the names up to {field} exceed {self.limits.all_key_bytes} bytes", start)
        at = self.skip(length, field)
        raw = self.data[at : at + length]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise GgufError(ENCODING, f"{field} is not UTF-8: {quoted(raw)}", at + error.start) from None
        if not text.isprintable():
            raise GgufError(EMPTY, f"{field} holds unprintable characters: {quoted(ascii(text))}", at)
        return text

    def string(self, field: str) -> tuple[int, int]:
        """Where a string value lies: (first byte, length). NPU-F013 over the limit, NPU-F010 past the end."""
        start = self.position
        length = self.u64(f"length of {field}")
        if length > self.limits.string_bytes:
            raise GgufError(
                LIMIT, f"length of {field} is {length}; this reader takes at most {self.limits.string_bytes}", start
            )
        if length > self.left:
            raise GgufError(LENGTH, f"length of {field} is {length}; {self.left} bytes are left", start)
        return self.skip(length, field), length

    def string_array(self, field: str, count: int) -> array[int]:
        """Step over ``count`` strings; returns the position of each ``STRIDE``-th. 0.14 us per string."""
        self.strings += count
        if self.strings > self.limits.strings:
            raise GgufError(
                LIMIT,
                f"{field} brings the strings of this header to {self.strings}; this reader takes at most "
                f"{self.limits.strings}",
                self.position,
            )
        marks = array("Q")
        unpack, data, longest = _U64.unpack_from, self.data, self.limits.string_bytes
        position, last = self.position, self.size - 8
        for first in range(0, count, STRIDE):
            marks.append(position)
            for index in range(first, min(first + STRIDE, count)):
                if position > last:
                    raise self._bad_string(field, marks, index, position)
                length = unpack(data, position)[0]
                if length > longest:
                    raise self._bad_string(field, marks, index, position)
                position += 8 + length
        if position > self.size:
            raise self._bad_string(field, marks, count, position)
        self.position = position
        return marks

    def _bad_string(self, field: str, marks: array[int], index: int, position: int) -> GgufError:
        """Why string ``index``, which would begin at ``position``, cannot be read."""
        if position > self.size:
            # The one before it ran over the end, so its length is at fault.
            index -= 1
            position = string_start(self.data, marks, index)
        self.position = position
        try:
            self.string(f"item {index} of {field}")
        except GgufError as error:
            return error
        raise AssertionError("a string that reads well was called bad")


def string_start(data: mmap.mmap, marks: array[int], index: int) -> int:
    """Where string ``index`` of an array begins (its length field), walking from the last mark before it."""
    position = marks[index // STRIDE]
    for _ in range(index % STRIDE):
        position += 8 + _U64.unpack_from(data, position)[0]
    return position


def aligned(position: int, alignment: int) -> int:
    """``position`` rounded up to a multiple of ``alignment``."""
    return -(-position // alignment) * alignment


def fits_i64(value: int) -> bool:
    """Whether ggml could hold it: sizes are int64 there, and a product beyond wraps."""
    return value <= _I64_MAX
