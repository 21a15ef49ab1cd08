# SPDX-License-Identifier: Apache-2.0
"""Tensor table of a GGUF file: names, dimensions, types, and where the data of each tensor lies."""

from __future__ import annotations

import struct
from typing import NamedTuple

from reference_engine.gguf_cursor import Cursor, aligned, fits_i64
from reference_engine.gguf_errors import (
    DIMENSIONS,
    DUPLICATE_TENSOR,
    EMPTY,
    KEY_TYPE,
    LIMIT,
    OVERLAP,
    RAGGED_ROW,
    TENSOR_OFFSET,
    TENSOR_TYPE,
    TENSOR_WORK,
    TRUNCATED,
    GgufError,
    quoted,
)
from reference_engine.gguf_types import REMOVED_TENSOR_TYPES, TENSOR_TYPES, TensorType, ValueType
from reference_engine.gguf_values import Metadata

ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT = 32
MAX_DIMENSIONS = 4  # GGML_MAX_DIMS
LEAST_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8  # name of one character, one dimension, type, offset
_SHOWN_OVERLAPS = 20
# What follows the number of dimensions in a row: the dimensions, the type, the offset.
_RECORDS = {n: struct.Struct(f"<{n}QIQ") for n in range(1, MAX_DIMENSIONS + 1)}


class TensorInfo(NamedTuple):
    """One row of the tensor table.

    ``dims`` in the file's order: ``dims[0]`` is the row length K. ``offset`` counts from the start of the tensor data.
    ``header_at`` is the byte where the row begins, ``offset_at`` that of its offset field.
    """

    name: str
    dims: tuple[int, ...]
    type: TensorType
    n_bytes: int
    offset: int
    header_at: int
    offset_at: int


def read_alignment(metadata: Metadata) -> int:
    """``general.alignment``: a power of two from 8 to 65536, 32 where it is absent. NPU-F013 otherwise."""
    if ALIGNMENT_KEY not in metadata:
        return DEFAULT_ALIGNMENT
    at = metadata.offset(ALIGNMENT_KEY)
    kind = metadata.value_type(ALIGNMENT_KEY)
    if kind is not ValueType.U32:
        raise GgufError(KEY_TYPE, f"key '{ALIGNMENT_KEY}' has type {kind.name}; U32 is needed", at)
    value = metadata.integer(ALIGNMENT_KEY)
    if not 8 <= value <= 65536 or value & (value - 1):
        raise GgufError(LIMIT, f"key '{ALIGNMENT_KEY}' is {value}; it must be a power of two from 8 to 65536", at)
    return value


def read_tensor_table(cursor: Cursor, count: int, alignment: int) -> tuple[TensorInfo, ...]:
    """Read ``count`` rows at the cursor. Sizes are held against int64, offsets against ``alignment``."""
    cursor.spend(count * TENSOR_WORK, "tensor count")
    infos: dict[str, TensorInfo] = {}
    for index in range(count):
        info = _read_row(cursor, index, alignment)
        if info.name in infos:
            raise GgufError(
                DUPLICATE_TENSOR,
                f"tensor {quoted(info.name)} stands twice; the first is at byte {infos[info.name].header_at}",
                info.header_at,
            )
        infos[info.name] = info
    table = tuple(infos.values())
    _check_sum(table, alignment)
    return table


def _read_row(cursor: Cursor, index: int, alignment: int) -> TensorInfo:
    header_at = cursor.position
    name = cursor.name("name of tensor", index, cursor.limits.tensor_name_bytes)
    n_dims = cursor.u32("number of dimensions of tensor", name)
    record = _RECORDS.get(n_dims)
    if record is None:
        raise GgufError(
            DIMENSIONS,
            f"tensor {quoted(name)} has {n_dims} dimensions; 1 to {MAX_DIMENSIONS} are allowed",
            cursor.position - 4,
        )
    at = cursor.position
    if record.size > cursor.left:
        _name_what_is_cut(cursor, n_dims, name)
    cursor.position = at + record.size
    *dims, type_number, offset = record.unpack_from(cursor.data, at)
    type_at = at + 8 * n_dims
    elements = _elements(dims, name, at)
    kind = TENSOR_TYPES.get(type_number)
    if kind is None:
        raise _unknown_type(type_number, name, type_at)
    if dims[0] % kind.block_elements:
        raise GgufError(
            RAGGED_ROW,
            f"rows of tensor {quoted(name)} have {dims[0]} elements, no multiple of the {kind.block_elements} of a "
            f"{kind.name} block",
            type_at,
        )
    n_bytes = elements // kind.block_elements * kind.block_bytes
    # Checked again after the padding: in C that step wraps a size just below 2^64 to nothing (CVE-2026-27940).
    if not fits_i64(aligned(n_bytes, alignment)):
        raise GgufError(DIMENSIONS, f"tensor {quoted(name)} has {n_bytes} bytes, more than an int64 can count", type_at)
    if offset % alignment:
        raise GgufError(
            TENSOR_OFFSET,
            f"offset of tensor {quoted(name)} is {offset}, no multiple of the alignment {alignment}",
            type_at + 4,
        )
    return TensorInfo(name, tuple(dims), kind, n_bytes, offset, header_at, type_at + 4)


def _elements(dims: list[int], name: str, at: int) -> int:
    """The product of ``dims``, which begin at byte ``at``: none may be 0, and it must fit an int64 at every step."""
    elements = 1
    for d, dim in enumerate(dims):
        if dim == 0:
            raise GgufError(EMPTY, f"dimension {d} of tensor {quoted(name)} is 0", at + 8 * d)
        elements *= dim
        if not fits_i64(elements):
            product = " x ".join(str(dim) for dim in dims[: d + 1])
            raise GgufError(
                DIMENSIONS,
                f"tensor {quoted(name)} has {product} elements, more than an int64 can count",
                at + 8 * d,
            )
    return elements


def _name_what_is_cut(cursor: Cursor, n_dims: int, name: str) -> None:
    """Step over the fields one by one: NPU-F015 at the one the file ends in."""
    for d in range(n_dims):
        cursor.u64(f"dimension {d} of tensor", name)
    cursor.u32("type of tensor", name)
    cursor.u64("offset of tensor", name)


def _unknown_type(number: int, name: str, at: int) -> GgufError:
    removed = REMOVED_TENSOR_TYPES.get(number)
    if removed is None:
        return GgufError(TENSOR_TYPE, f"tensor {quoted(name)} has the unknown type {number}", at)
    return GgufError(TENSOR_TYPE, f"tensor {quoted(name)} has type {number} ({removed}), which ggml has removed", at)


def _check_sum(infos: tuple[TensorInfo, ...], alignment: int) -> None:
    """The padded sizes must add up within int64 (CVE-2025-53630: a sum that wraps gave too small a buffer)."""
    total = 0
    for info in infos:
        total += aligned(info.n_bytes, alignment)
        if not fits_i64(total):
            raise GgufError(
                DIMENSIONS,
                f"the padded sizes of the tensors up to {quoted(info.name)} sum to {total} bytes, more than an int64 "
                "can count",
                info.header_at,
            )


def check_ranges(infos: tuple[TensorInfo, ...], data_start: int, file_size: int, alignment: int) -> None:
    """Every tensor must lie in the file: NPU-F014 for an offset that no order of the tensors explains, NPU-F015 else.

    A file cut short has sane offsets that end past its end; an offset beyond the sum of all tensors is damage.
    """
    total = sum(aligned(info.n_bytes, alignment) for info in infos)
    expected = max((data_start + info.offset + info.n_bytes for info in infos), default=0)
    for info in infos:
        end = data_start + info.offset + info.n_bytes
        if end <= file_size:
            continue
        if info.offset + info.n_bytes > total:
            raise GgufError(
                TENSOR_OFFSET,
                f"tensor {quoted(info.name)} would end at byte {end}, beyond what all tensors together take; the file "
                f"has {file_size} bytes",
                info.offset_at,
            )
    missing = [info for info in infos if data_start + info.offset + info.n_bytes > file_size]
    if missing:
        raise GgufError(
            TRUNCATED,
            f"the file is cut short: {expected} bytes expected, {file_size} there; {len(missing)} of {len(infos)} "
            f"tensors are not whole, the first is {quoted(missing[0].name)}",
            file_size,
        )


def overlaps(infos: tuple[TensorInfo, ...]) -> tuple[GgufError, ...]:
    """A warning for each tensor that begins inside the one before it; shared data is legal to some writers."""
    found: list[GgufError] = []
    reach: TensorInfo | None = None
    for info in sorted(infos, key=lambda info: (info.offset, info.header_at)):
        if reach is not None and info.offset < reach.offset + reach.n_bytes:
            found.append(
                GgufError(
                    OVERLAP,
                    f"tensor {quoted(info.name)} begins at {info.offset}, inside {quoted(reach.name)} "
                    f"({reach.offset} to {reach.offset + reach.n_bytes})",
                    info.offset_at,
                )
            )
            if len(found) == _SHOWN_OVERLAPS:
                break
        if reach is None or info.offset + info.n_bytes > reach.offset + reach.n_bytes:
            reach = info
    return tuple(found)
