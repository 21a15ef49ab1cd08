# SPDX-License-Identifier: Apache-2.0
"""A plain ctypes client of librknnrt for the mock's tests.

The declarations are written here again, from the tables of sizes and offsets, so that a slip in the kit's header cannot
hide behind itself.
"""

from __future__ import annotations

import ctypes as c
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RKNPU_TEST_BUILD", ROOT / "build"))
"""Where the libraries are built; another folder for builds with sanitizers."""
VERSIONS = ("1.5.2", "1.6.0", "2.0.0-beta0", "2.1.0", "2.3.2")

NORM, NATIVE, TP_NORM = 0, 1, 2
PER_LAYER, PER_CHANNEL, PER_GROUP = 0, 2, 4


class TensorAttr(c.Structure):
    _fields_ = [
        ("name", c.c_char * 256),
        ("n_dims", c.c_uint32),
        ("dims", c.c_uint32 * 16),
        ("size", c.c_uint32),
        ("type", c.c_int32),
    ]

    def shape(self) -> tuple[int, ...]:
        return tuple(self.dims[: self.n_dims])


class IoAttr(c.Structure):
    _fields_ = [("A", TensorAttr), ("B", TensorAttr), ("C", TensorAttr)]


class Info(c.Structure):
    _fields_ = [
        ("M", c.c_int32),
        ("K", c.c_int32),
        ("N", c.c_int32),
        ("type", c.c_int32),
        ("B_layout", c.c_int16),
        ("B_quant_type", c.c_int16),
        ("AC_layout", c.c_int16),
        ("AC_quant_type", c.c_int16),
        ("iommu_domain_id", c.c_int32),
        ("group_size", c.c_int16),
        ("reserved", c.c_int8 * 34),
    ]


class Shape(c.Structure):
    _fields_ = [("M", c.c_int32), ("K", c.c_int32), ("N", c.c_int32)]


class TensorMem(c.Structure):
    _fields_ = [
        ("virt_addr", c.c_void_p),
        ("phys_addr", c.c_uint64),
        ("fd", c.c_int32),
        ("offset", c.c_int32),
        ("size", c.c_uint32),
        ("flags", c.c_uint32),
        ("priv_data", c.c_void_p),
    ]


class QuantParams(c.Structure):
    _fields_ = [
        ("name", c.c_char * 256),
        ("scale", c.POINTER(c.c_float)),
        ("scale_len", c.c_int32),
        ("zp", c.POINTER(c.c_int32)),
        ("zp_len", c.c_int32),
    ]


Memory = Any
"""POINTER(TensorMem) as ctypes gives it back."""


def load(version: str = "2.3.2", **environment: str) -> c.CDLL:
    """A fresh instance of the library with RKNN_MOCK_<NAME>=value for each keyword, its settings already read."""
    directory = Path(tempfile.mkdtemp(prefix="mock-lib-"))
    copy = directory / "librknnrt.so"
    shutil.copy(BUILD / "mock" / version / "librknnrt.so", copy)
    names = {f"RKNN_MOCK_{name.upper()}": value for name, value in environment.items()}
    kept = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        library = c.CDLL(str(copy))
        declare(library)
        library.rknn_matmul_destroy(0)  # the first call reads the settings
    finally:
        for name, value in kept.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        shutil.rmtree(directory)
    return library


def declare(library: c.CDLL) -> None:
    """Argument types, where a guess by ctypes would be wrong (64-bit handles and sizes)."""
    mem, ctx = c.POINTER(TensorMem), c.c_uint64
    arguments: dict[str, tuple[Any, list[Any]]] = {
        "rknn_create_mem": (mem, [ctx, c.c_uint32]),
        "rknn_create_mem2": (mem, [ctx, c.c_uint64, c.c_uint64]),
        "rknn_create_mem_from_fd": (mem, [ctx, c.c_int32, c.c_void_p, c.c_uint32, c.c_int32]),
        "rknn_create_mem_from_phys": (mem, [ctx, c.c_uint64, c.c_void_p, c.c_uint32]),
        "rknn_destroy_mem": (c.c_int, [ctx, mem]),
        "rknn_mem_sync": (c.c_int, [ctx, mem, c.c_int]),
        "rknn_query": (c.c_int, [ctx, c.c_int, c.c_void_p, c.c_uint32]),
        "rknn_matmul_create": (c.c_int, [c.c_void_p, c.c_void_p, c.c_void_p]),
        "rknn_matmul_set_io_mem": (c.c_int, [ctx, mem, c.c_void_p]),
        "rknn_matmul_set_core_mask": (c.c_int, [ctx, c.c_int]),
        "rknn_matmul_run": (c.c_int, [ctx]),
        "rknn_matmul_destroy": (c.c_int, [ctx]),
        "rknn_matmul_set_dynamic_shape": (c.c_int, [ctx, c.c_void_p]),
        "rknn_matmul_set_quant_params": (c.c_int, [ctx, c.c_void_p]),
        "rknn_matmul_get_quant_params": (c.c_int, [ctx, c.c_void_p, c.POINTER(c.c_float)]),
        "rknn_mock_version": (c.c_char_p, []),
        "rknn_mock_kernel": (c.c_char_p, []),
        "rknn_mock_check": (c.c_int, [c.c_char_p, c.c_char_p, c.c_size_t]),
        "rknn_mock_list": (c.c_size_t, [c.c_char_p, c.c_char_p, c.c_size_t]),
        "rknn_mock_counter": (c.c_int, [c.c_char_p, c.POINTER(c.c_uint64)]),
    }
    for name, (result, types) in arguments.items():
        if hasattr(library, name):
            function = getattr(library, name)
            function.restype, function.argtypes = result, types


def counter(library: c.CDLL, name: str) -> int:
    value = c.c_uint64()
    assert library.rknn_mock_counter(name.encode(), c.byref(value)) == 0
    return value.value


class Matmul:
    """One context with memory for A, B and C. ``code`` is what create returned; nothing else happens when it failed."""

    def __init__(
        self,
        library: c.CDLL,
        kind: int,
        M: int,
        K: int,
        N: int,
        *,
        b_layout: int = NORM,
        ac_layout: int = NORM,
        b_quant: int = PER_LAYER,
        group_size: int = 0,
        domain: int = 0,
        slack: int = 0,
    ) -> None:
        self.library = library
        self.ctx = c.c_uint64(0)
        self.io = IoAttr()
        info = Info(M, K, N, kind, b_layout, b_quant, ac_layout, 0, domain, group_size)
        self.code = library.rknn_matmul_create(c.byref(self.ctx), c.byref(info), c.byref(self.io))
        self.memory: dict[str, Memory] = {}
        if self.code == 0 and self.ctx.value:
            for name in "ABC":
                attr = getattr(self.io, name)
                self.memory[name] = library.rknn_create_mem(self.ctx, attr.size + slack)
                assert self.memory[name], name

    def bytes(self, name: str) -> NDArray[np.uint8]:
        """The mapped bytes of one operand, writable."""
        mem = self.memory[name].contents
        return np.ctypeslib.as_array(c.cast(mem.virt_addr, c.POINTER(c.c_uint8)), shape=(mem.size,))

    def write(self, name: str, data: NDArray[Any]) -> None:
        raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
        assert raw.size == getattr(self.io, name).size, (name, raw.size, getattr(self.io, name).size)
        self.bytes(name)[: raw.size] = raw

    def bind(self, names: str = "ABC") -> list[int]:
        return [
            self.library.rknn_matmul_set_io_mem(self.ctx, self.memory[n], c.byref(getattr(self.io, n))) for n in names
        ]

    def run(self) -> int:
        return int(self.library.rknn_matmul_run(self.ctx))

    def scales(self, name: str, values: NDArray[np.float32], zp: int | None = None) -> int:
        array = np.ascontiguousarray(values, dtype=np.float32)
        params = QuantParams(name.encode(), array.ctypes.data_as(c.POINTER(c.c_float)), array.size)
        zero = c.c_int32(zp or 0)
        if zp is not None:
            params.zp, params.zp_len = c.pointer(zero), 1
        return int(self.library.rknn_matmul_set_quant_params(self.ctx, c.byref(params)))

    def close(self) -> None:
        for mem in self.memory.values():
            assert self.library.rknn_destroy_mem(self.ctx, mem) == 0
        self.memory = {}
        if self.ctx.value:
            assert self.library.rknn_matmul_destroy(self.ctx) == 0
            self.ctx = c.c_uint64(0)

    def __enter__(self) -> Matmul:
        assert self.code == 0, f"create returned {self.code}"
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
