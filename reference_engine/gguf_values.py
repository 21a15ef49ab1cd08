# SPDX-License-Identifier: Apache-2.0
"""Metadata of a GGUF file: values, arrays that stay in the file until read, and getters that name the key."""

from __future__ import annotations

import mmap
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union, overload

from reference_engine.gguf_cursor import Cursor, string_start
from reference_engine.gguf_errors import (
    ARRAY_WORK,
    DUPLICATE_KEY,
    KEY_MISSING,
    KEY_TYPE,
    KEY_WORK,
    LENGTH,
    VALUE_TYPE,
    GgufError,
    quoted,
)
from reference_engine.gguf_types import FLOATS, INTEGERS, SCALARS, ValueType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_U64 = struct.Struct("<Q")

LEAST_KEY_BYTES = 8 + 1 + 4 + 1  # length, one character, type, one byte of value
_LEAST_STRING = 8
_LEAST_ARRAY = 4 + 8
_VALUE_TYPES = {int(kind): kind for kind in ValueType}


class GgufArray(Sequence[Any]):
    """An array value. Items are decoded from the mapped file when asked for; nothing is kept.

    ``item_type`` is their type. Strings are UTF-8; bytes that are not come as surrogates (``surrogateescape``), so that
    ``bytes_at`` and a round trip give the file's own bytes.
    """

    def __init__(
        self,
        data: mmap.mmap,
        item_type: ValueType,
        count: int,
        start: int,
        *,
        marks: array[int] | None = None,
        inner: tuple[GgufArray, ...] = (),
    ) -> None:
        self._data = data
        self._count = count
        self._start = start
        self._marks = marks
        self._inner = inner
        self.item_type = item_type

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    @overload
    def __getitem__(self, index: int) -> Any: ...

    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            start, stop, step = index.indices(self._count)
            if step != 1:
                return [self[i] for i in range(start, stop, step)]
            return self._items(start, max(start, stop))
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(f"item {index} of an array of {self._count}")
        return self._items(at, at + 1)[0]

    def tolist(self) -> list[Any]:
        """All items, decoded in one pass."""
        return self._items(0, self._count)

    def bytes_at(self, index: int) -> bytes:
        """The bytes of one string item, as they stand in the file."""
        if self._marks is None:
            raise TypeError(f"an array of {self.item_type.name} holds no strings")
        if not 0 <= index < self._count:
            raise IndexError(f"item {index} of an array of {self._count}")
        at = string_start(self._data, self._marks, index)
        (length,) = _U64.unpack_from(self._data, at)
        return self._data[at + 8 : at + 8 + length]

    def numpy(self) -> NDArray[Any]:
        """The numbers as a numpy array of their own type (a copy). TypeError for strings and arrays of arrays."""
        import numpy as np  # noqa: PLC0415  the header is read without numpy; only this needs it

        if self.item_type not in SCALARS:
            raise TypeError(f"an array of {self.item_type.name} holds no numbers")
        dtype: np.dtype[Any] = np.dtype("<" + SCALARS[self.item_type].format[1:])
        return np.frombuffer(self._raw(0, self._count), dtype=dtype)

    def _raw(self, start: int, stop: int) -> bytes:
        size = SCALARS[self.item_type].size
        return self._data[self._start + start * size : self._start + stop * size]

    def _items(self, start: int, stop: int) -> list[Any]:
        if self.item_type is ValueType.ARRAY:
            return list(self._inner[start:stop])
        if self._marks is not None:
            return self._strings(start, stop)
        kind = SCALARS[self.item_type].format[1:]
        return list(struct.unpack(f"<{stop - start}{kind}", self._raw(start, stop)))

    def _strings(self, start: int, stop: int) -> list[str]:
        if start >= stop or self._marks is None:
            return []
        data, unpack = self._data, _U64.unpack_from
        at = string_start(data, self._marks, start)
        out = []
        for _ in range(start, stop):
            end = at + 8 + unpack(data, at)[0]
            out.append(data[at + 8 : end].decode("utf-8", "surrogateescape"))
            at = end
        return out


Value = Union[bool, int, float, str, GgufArray]


class _Field(NamedTuple):
    """One key: ``offset`` is the byte at which its entry begins, ``at`` that of its value."""

    value_type: ValueType
    offset: int
    at: int
    length: int = 0
    items: GgufArray | None = None


_REQUIRED = object()


class Metadata(Mapping[str, Value]):
    """Keys and values of a GGUF file, in the file's order. A string is decoded each time it is asked for.

    The typed getters raise GgufError NPU-F028 (key missing) or NPU-F027 (other type), with key and byte offset; a
    ``default`` is returned as it is where the key is missing.
    """

    def __init__(self, data: mmap.mmap, fields: Mapping[str, _Field]) -> None:
        self._data = data
        self._fields = fields

    def __getitem__(self, key: str) -> Value:
        field = self._fields[key]
        if field.items is not None:
            return field.items
        if field.value_type is ValueType.STRING:
            return self._data[field.at : field.at + field.length].decode("utf-8", "surrogateescape")
        value: Value = SCALARS[field.value_type].unpack_from(self._data, field.at)[0]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def offset(self, key: str) -> int | None:
        """The byte at which the entry of ``key`` begins; None where there is no such key."""
        field = self._fields.get(key)
        return None if field is None else field.offset

    def value_type(self, key: str) -> ValueType:
        """Type of the value as stored. KeyError for an unknown key."""
        return self._fields[key].value_type

    def text(self, key: str, default: object = _REQUIRED) -> str:
        return self._typed(key, frozenset({ValueType.STRING}), "a string", default)  # type: ignore[no-any-return]

    def integer(self, key: str, default: object = _REQUIRED) -> int:
        return self._typed(key, INTEGERS, "an integer", default)  # type: ignore[no-any-return]

    def number(self, key: str, default: object = _REQUIRED) -> float:
        """A float or an integer: some writers store 10000 as one, some as the other."""
        return float(self._typed(key, INTEGERS | FLOATS, "a number", default))

    def boolean(self, key: str, default: object = _REQUIRED) -> bool:
        return self._typed(key, frozenset({ValueType.BOOL}), "a boolean", default)  # type: ignore[no-any-return]

    def array(self, key: str, items: frozenset[ValueType], what: str) -> GgufArray:
        """The array at ``key`` whose items have one of the types ``items``; ``what`` names them in the error."""
        found: GgufArray = self._typed(key, frozenset({ValueType.ARRAY}), f"an array of {what}", _REQUIRED)
        if found.item_type not in items:
            raise GgufError(
                KEY_TYPE,
                f"key {quoted(key)} is an array of {found.item_type.name}; an array of {what} is needed",
                self.offset(key),
            )
        return found

    def strings(self, key: str) -> GgufArray:
        return self.array(key, frozenset({ValueType.STRING}), "strings")

    def _typed(self, key: str, types: frozenset[ValueType], what: str, default: object) -> Any:
        field = self._fields.get(key)
        if field is None:
            if default is _REQUIRED:
                raise GgufError(KEY_MISSING, f"key {quoted(key)} is missing ({what} is needed)")
            return default
        if field.value_type not in types:
            raise GgufError(
                KEY_TYPE, f"key {quoted(key)} has type {field.value_type.name}; {what} is needed", field.offset
            )
        return self[key]


def read_metadata(cursor: Cursor, count: int) -> Metadata:
    """Read ``count`` keys at the cursor. Nothing is decoded but the keys."""
    cursor.spend(count * KEY_WORK, "key count")
    fields: dict[str, _Field] = {}
    longest = cursor.limits.key_bytes
    for index in range(count):
        offset = cursor.position
        key = cursor.name("key", index, longest)
        if key in fields:
            raise GgufError(
                DUPLICATE_KEY, f"key {quoted(key)} stands twice; the first is at byte {fields[key].offset}", offset
            )
        fields[key] = _read_field(cursor, key, offset)
    return Metadata(cursor.data, fields)


def _read_field(cursor: Cursor, key: str, offset: int) -> _Field:
    kind = _value_type(cursor, "type of key", key)
    scalar = SCALARS.get(kind)
    if scalar is not None:
        return _Field(kind, offset, cursor.skip(scalar.size, "value of key", key))
    if kind is ValueType.STRING:
        at, length = cursor.string("key", key)
        return _Field(kind, offset, at, length)
    at = cursor.position
    return _Field(kind, offset, at, items=_read_array(cursor, key, 1))


def _value_type(cursor: Cursor, field: str, key: str) -> ValueType:
    number = cursor.u32(field, key)
    kind = _VALUE_TYPES.get(number)
    if kind is None:
        known = f"the format knows 0 to {max(ValueType)}"
        raise GgufError(VALUE_TYPE, f"{field} {quoted(key)} is {number}; {known}", cursor.position - 4)
    return kind


def _read_array(cursor: Cursor, key: str, depth: int) -> GgufArray:
    start = cursor.position
    if depth > cursor.limits.array_depth:
        raise GgufError(LENGTH, f"key {quoted(key)} nests arrays deeper than {cursor.limits.array_depth}", start)
    kind = _value_type(cursor, "item type of key", key)
    scalar = SCALARS.get(kind)
    least = scalar.size if scalar is not None else _LEAST_STRING if kind is ValueType.STRING else _LEAST_ARRAY
    count = cursor.count("length of key", key, item_bytes=least)
    at = cursor.position
    if scalar is not None:
        cursor.skip(count * least, "key", key)
        return GgufArray(cursor.data, kind, count, at)
    if kind is ValueType.STRING:
        return GgufArray(cursor.data, kind, count, at, marks=cursor.string_array(key, count))
    cursor.spend(count * ARRAY_WORK, "key", key)
    inner = tuple(_read_array(cursor, key, depth + 1) for _ in range(count))
    return GgufArray(cursor.data, kind, count, at, inner=inner)
