# SPDX-License-Identifier: Apache-2.0
"""Reads fixed fields and lengths from a mapped file; every length is held against the bytes left before it is used.

A field is named by two words, as in ("dimension 0 of tensor", "output.weight"): they become text in a refusal only, for
a sentence costs more than the field.
"""

from __future__ import annotations

import mmap
import struct
from array import array

from reference_engine.gguf_errors import EMPTY, ENCODING, LENGTH, LIMIT, TRUNCATED, GgufError, Limits, named, quoted

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
        self._most = limits.header_bytes
        self._work = 0
        self._name_bytes = 0

    @property
    def left(self) -> int:
        return self.size - self.position

    def spend(self, work: int, field: str, name: str = "") -> None:
        """Count ``work`` towards the limit of the header. NPU-F013 beyond it."""
        self._work += work
        if self._work > self.limits.work:
            raise GgufError(
                LIMIT,
                f"{named(field, name)} brings the work of reading this header to {self._work}; this reader takes at "
                f"most {self.limits.work}",
                self.position,
            )

    def skip(self, count: int, field: str, name: str = "") -> int:
        """Step over ``count`` bytes and return where they began. NPU-F015 where the file ends before."""
        start = self.position
        end = start + count
        if end > self.size:
            raise GgufError(
                TRUNCATED,
                f"the file ends inside {named(field, name)}: {count} bytes expected, {self.left} left of {self.size}",
                start,
            )
        if end > self._most:
            raise self._too_large(field, name)
        self.position = end
        return start

    def _too_large(self, field: str, name: str) -> GgufError:
        return GgufError(
            LIMIT,
            f"{named(field, name)} brings the header beyond {self._most} bytes, the most this reader takes",
            self.position,
        )

    def u32(self, field: str, name: str = "") -> int:
        value: int = _U32.unpack_from(self.data, self.skip(4, field, name))[0]
        return value

    def u64(self, field: str, name: str = "") -> int:
        value: int = _U64.unpack_from(self.data, self.skip(8, field, name))[0]
        return value

    def count(self, field: str, name: str = "", *, item_bytes: int, limit: int | None = None) -> int:
        """A u64 that counts items of at least ``item_bytes`` each. NPU-F010 if they cannot fit, NPU-F013 over limit."""
        start = self.position
        value = self.u64(field, name)
        if value * item_bytes > self.size - self.position:
            raise GgufError(
                LENGTH,
                f"{named(field, name)} is {value}, which needs at least {value * item_bytes} bytes; {self.left} are "
                "left",
                start,
            )
        if limit is not None and value > limit:
            raise GgufError(LIMIT, f"{named(field, name)} is {value}; this reader takes at most {limit}", start)
        return value

    def name(self, field: str, index: int, longest: int) -> str:
        """Name number ``index`` of a key or tensor: not empty, UTF-8, printable, at most ``longest`` bytes.

        The budget for all names together keeps a file of a hundred megabytes of keys from becoming objects.
        """
        start = self.position
        length = self.count("length of " + field, str(index), item_bytes=1, limit=longest)
        if length == 0:
            raise GgufError(EMPTY, f"{field} {index} is empty", start)
        self._name_bytes += length
        if self._name_bytes > self.limits.name_bytes:
            raise GgufError(
                LIMIT, f"the names up to {field} {index} exceed {self.limits.name_bytes} bytes together", start
            )
        at = self.position
        self.position = at + length
        raw = self.data[at : at + length]
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise GgufError(ENCODING, f"{field} {index} is not UTF-8: {quoted(raw)}", at + error.start) from None
        if not text.isprintable():
            raise GgufError(EMPTY, f"{field} {index} holds unprintable characters: {quoted(ascii(text))}", at)
        return text

    def string(self, field: str, name: str) -> tuple[int, int]:
        """Where a string value lies: (first byte, length). NPU-F013 over the limit, NPU-F010 past the end."""
        start = self.position
        length = self.u64("length of " + field, name)
        if length > self.limits.string_bytes:
            raise GgufError(
                LIMIT,
                f"length of {named(field, name)} is {length}; this reader takes at most {self.limits.string_bytes}",
                start,
            )
        if length > self.left:
            raise GgufError(LENGTH, f"length of {named(field, name)} is {length}; {self.left} bytes are left", start)
        return self.skip(length, field, name), length

    def string_array(self, name: str, count: int) -> array[int]:
        """Step over ``count`` strings of key ``name``; returns the position of each ``STRIDE``-th."""
        self.spend(count, "key", name)
        marks = array("Q")
        unpack, data, longest = _U64.unpack_from, self.data, self.limits.string_bytes
        position, first, index = self.position, 0, 0
        try:
            for first in range(0, count, STRIDE):
                marks.append(position)
                for index in range(first, min(first + STRIDE, count)):
                    length = unpack(data, position)[0]
                    if length > longest:
                        raise self._bad_string(name, marks, index, position)
                    position += 8 + length
                if position > self._most:
                    break
        except struct.error:
            # Past the end; asking before each string would cost an eighth of the time.
            raise self._bad_string(name, marks, index, position) from None
        if position > self.size:
            raise self._bad_string(name, marks, min(first + STRIDE, count), position)
        if position > self._most:
            raise self._too_large("key", name)
        self.position = position
        return marks

    def _bad_string(self, name: str, marks: array[int], index: int, position: int) -> GgufError:
        """Why string ``index``, which would begin at ``position``, cannot be read."""
        if position > self.size:
            # The one before it ran over the end, so its length is at fault.
            index -= 1
            position = string_start(self.data, marks, index)
        self.position = position
        try:
            self.string(f"item {index} of key", name)
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
