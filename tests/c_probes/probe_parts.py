# SPDX-License-Identifier: Apache-2.0
"""The C parts of the probes through ctypes, with just enough of their structs."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any

import numpy as np
import numpy.typing as npt

NORM, NATIVE = 0, 1
FLOAT32, FLOAT16, INT8, INT16, INT32, INT4, BFLOAT16 = 0, 1, 2, 4, 6, 10, 11
BITS = {FLOAT32: 32, FLOAT16: 16, INT8: 8, INT16: 16, INT32: 32, INT4: 4, BFLOAT16: 16}
Ints = npt.NDArray[np.int64]


class Attr(ctypes.Structure):
    """rknn_matmul_tensor_attr."""

    _fields_ = (
        ("name", c_char * 256),
        ("n_dims", c_uint32),
        ("dims", c_uint32 * 16),
        ("size", c_uint32),
        ("type", c_int),
    )


class FillPlan(ctypes.Structure):
    _fields_ = tuple((name, c_int) for name in ("a_min", "a_max", "b_min", "b_max", "nonzeros_per_row"))


class Report(ctypes.Structure):
    """struct oracle_report."""

    _fields_ = (
        ("kind", c_int),
        ("rows_wrong", c_int64),
        ("wrong_elements", c_int64),
        ("rows_computed", c_int64),
        ("not_written", c_int64),
        ("zeros", c_int64),
        ("first_row", c_int),
        ("first_col", c_int),
        ("got", c_double),
        ("expected", c_int64),
    )


class FieldVector(ctypes.Structure):
    _fields_ = (("count", c_size_t), ("wide", c_void_p * 2), ("narrow", c_void_p * 3))


class Oracle(ctypes.Structure):
    _fields_ = (
        ("M", c_int),
        ("K", c_int),
        ("N", c_int),
        ("A", c_void_p),
        ("B", c_void_p),
        ("x", FieldVector * 2),
        ("want", c_void_p * 2),
    )


class SamplePlan(ctypes.Structure):
    _fields_ = (("samples", c_int), ("runs_per_sample", c_int))


class Burst(ctypes.Structure):
    _fields_ = (("start_us", c_double), ("ends_us", POINTER(c_double)), ("runs", c_int))


class Json(ctypes.Structure):
    _fields_ = (("text", c_char_p), ("length", c_size_t), ("capacity", c_size_t), ("comma", c_bool))


SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "layout_check": (c_bool, [POINTER(Attr), c_int, c_int, c_int, c_int, c_char_p, c_size_t]),
    "layout_order_A": (None, [c_void_p, POINTER(Attr), c_void_p, c_int, c_int]),
    "layout_order_B": (None, [c_void_p, POINTER(Attr), c_void_p, c_int, c_int, c_int]),
    "layout_encode": (c_bool, [c_void_p, c_int, c_void_p, c_size_t]),
    "layout_row_C": (c_size_t, [POINTER(Attr), c_void_p, c_size_t, c_void_p, c_size_t]),
    "sentinel_fill": (None, [c_void_p, c_size_t]),
    "sentinel_at": (c_bool, [c_void_p, c_size_t, c_size_t]),
    "oracle_init": (c_bool, [POINTER(Oracle), c_void_p, c_void_p, c_int, c_int, c_int, c_uint64]),
    "oracle_free": (None, [POINTER(Oracle)]),
    "oracle_check": (
        c_bool,
        [POINTER(Oracle), POINTER(Attr), c_void_p, POINTER(POINTER(Oracle)), c_int, POINTER(Report)],
    ),
    "oracle_kind_word": (c_char_p, [c_int]),
    "fill_plan_for": (FillPlan, [c_int] * 5),
    "fill_A": (None, [c_void_p, c_int, c_int, POINTER(FillPlan), c_uint64]),
    "fill_B": (None, [c_void_p, c_int, c_int, POINTER(FillPlan), c_uint64]),
    "half_of_integer": (ctypes.c_uint16, [c_int]),
    "float_of_half": (ctypes.c_float, [ctypes.c_uint16]),
    "bfloat16_of_integer": (ctypes.c_uint16, [c_int]),
    "float_of_bfloat16": (ctypes.c_float, [ctypes.c_uint16]),
    "field_vector_init": (c_bool, [POINTER(FieldVector), c_size_t]),
    "field_vector_free": (None, [POINTER(FieldVector)]),
    "field_vector_set": (None, [POINTER(FieldVector), c_size_t, c_uint64]),
    "dot_int8": (c_uint64, [c_void_p, POINTER(FieldVector)]),
    "dot_int32": (c_uint64, [c_void_p, POINTER(FieldVector)]),
    "median_of": (c_double, [POINTER(c_double), c_size_t]),
    "mad_of": (c_double, [POINTER(c_double), c_size_t]),
    "plan_samples": (SamplePlan, [c_double, c_double]),
    "common_window": (c_bool, [POINTER(Burst), c_int, POINTER(c_double), POINTER(c_double)]),
    "json_string": (None, [POINTER(Json), c_char_p]),
    "json_number": (None, [POINTER(Json), c_double]),
    "json_free": (None, [POINTER(Json)]),
    "library_version_number": (c_int, [c_char_p]),
    "library_file_version": (c_bool, [c_char_p, c_char_p, c_size_t]),
}


def load(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def make_attr(dims: tuple[int, ...], tensor_type: int) -> Attr:
    attr = Attr(n_dims=len(dims), type=tensor_type)
    for i, dim in enumerate(dims):
        attr.dims[i] = dim
    attr.size = int(np.prod(dims)) * BITS[tensor_type] // 8
    return attr


def attr_of_C(M: int, N: int, layout: int, tensor_type: int) -> Attr:
    cell = 128 // BITS[tensor_type]
    return make_attr((M, N) if layout == NORM else (-(-N // cell), M, cell), tensor_type)


def store_C(values: Ints, layout: int, tensor_type: int) -> npt.NDArray[Any]:
    """C as the library would leave it, packed by numpy alone."""
    kinds: dict[int, Any] = {
        FLOAT32: np.float32,
        FLOAT16: np.float16,
        INT8: np.int8,
        INT16: np.int16,
        INT32: np.int32,
    }
    if tensor_type == BFLOAT16:
        typed: npt.NDArray[Any] = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    else:
        typed = values.astype(kinds[tensor_type])
    if layout == NATIVE:
        M, N = values.shape
        cell = 128 // BITS[tensor_type]
        typed = np.pad(typed, ((0, 0), (0, -N % cell))).reshape(M, -1, cell).transpose(1, 0, 2)
    return np.ascontiguousarray(typed)
