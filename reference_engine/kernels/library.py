# SPDX-License-Identifier: Apache-2.0
"""Finds, checks and wraps ``libengine_kernels.so``.

The library is optional: everything it does has a numpy twin that gives the same bits. Its functions are declared to
cffi from the marked part of each header in ``include/``, so that the headers are the only place that states them.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from c_probes.abi import declarations

ENVIRONMENT = "RKNPU_KIT_KERNELS"
"""``numpy`` does without the library; the name of a CPU path (``avx2``, ``neon``, ``c``, ...) forces that path."""

ABI = 2
"""The ``ek_abi()`` this package was written for."""

INCLUDE = Path(__file__).with_name("include")
BUILD = Path(__file__).resolve().parents[2] / "build"


class KernelLibraryError(RuntimeError):
    """The library is there and cannot be used as asked; the message says what to do."""


class KernelLibrary:
    """The opened library.

    ``lib`` holds its functions; ``floats`` and its like turn a C-contiguous array into the pointer that they take. Such
    a pointer keeps its array alive. A call releases the interpreter's lock.
    """

    def __init__(self, file: Path, path: str = "") -> None:
        """KernelLibraryError where the file is no such library, is of another version or has no such CPU path."""
        self.file = file
        try:
            from cffi import FFI  # noqa: PLC0415  its absence costs speed, not the engine
        except ImportError as error:
            raise KernelLibraryError("the Python package cffi is not installed: pip install cffi") from error
        self.ffi: Any = FFI()
        for header in sorted(INCLUDE.glob("*.h")):
            text = header.read_text(encoding="utf-8")
            if "/* cdef begin */" in text:
                self.ffi.cdef(declarations(text))
        try:
            self.lib: Any = self.ffi.dlopen(str(file))
            found = self.lib.ek_abi()
        except (OSError, AttributeError) as error:
            raise KernelLibraryError(f"{file} cannot be loaded ({error}); run 'make build' again") from error
        if found != ABI:
            raise KernelLibraryError(f"{file} is of another version ({found}, not {ABI}); run 'make build' again")
        if self.lib.ek_use_path(path.encode()):
            raise KernelLibraryError(
                f"this CPU has no kernel path {path!r}; leave {ENVIRONMENT} unset for the best one"
            )
        kinds = {kind: self.ffi.typeof(f"{kind} *") for kind in _POINTERS}
        from_buffer = self.ffi.from_buffer
        self._pointer = {dtype: kinds[kind] for kind, dtype in _POINTERS.items()}
        float_kind, byte_kind, int_kind = kinds["float"], kinds["uint8_t"], kinds["int32_t"]
        # By id, which stays an array's own: the pointer keeps the array alive.
        self._pinned: dict[int, Any] = {}
        pinned = self._pinned.get
        self.floats: Any = lambda array: pinned(id(array)) or from_buffer(float_kind, array)
        self.bytes: Any = lambda array: from_buffer(byte_kind, array)
        self.ints: Any = lambda array: from_buffer(int_kind, array)

    def pin(self, *arrays: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        """Keep arrays and their pointers until ``unpin``: ``floats`` is then a look-up, a third of making one."""
        for array in arrays:
            self._pinned[id(array)] = self.floats(array)

    def unpin(self, *arrays: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        """Let go of arrays that were pinned; others are left out."""
        for array in arrays:
            self._pinned.pop(id(array), None)

    @property
    def path(self) -> str:
        """The CPU path in use: ``avx512-vnni``, ``avx-vnni``, ``avx2``, ``neon-dot``, ``neon`` or ``c``."""
        return str(self.ffi.string(self.lib.ek_path()).decode())

    def use_path(self, path: str) -> bool:
        """Force a CPU path ("" for the best one); False when this CPU lacks it. For tests."""
        return bool(self.lib.ek_use_path(path.encode()) == 0)

    def pointer(self, array: np.ndarray[Any, np.dtype[Any]]) -> Any:
        """A pointer of the array's own element type. KeyError for a type that no kernel takes."""
        return self.ffi.from_buffer(self._pointer[array.dtype.type], array)


_POINTERS: dict[str, type[np.generic]] = {
    "float": np.float32,
    "double": np.float64,
    "uint8_t": np.uint8,
    "int8_t": np.int8,
    "uint16_t": np.uint16,
    "int16_t": np.int16,
    "int32_t": np.int32,
    "int64_t": np.int64,
    "uint32_t": np.uint32,
}


def library_file(build: Path | None = None) -> Path:
    """Where ``make build`` puts the library."""
    return (build or BUILD) / "engine" / "libengine_kernels.so"


def load_library(build: Path | None = None) -> KernelLibrary | None:
    """The library of this checkout, or None: not built, not usable, or not wanted (:func:`why_absent` says which).

    KernelLibraryError where the environment asks for a CPU path that cannot be had.
    """
    wanted = os.environ.get(ENVIRONMENT, "")
    if wanted == "numpy":
        return None
    try:
        return _open(build, wanted)
    except KernelLibraryError:
        if wanted:
            raise
        return None


def why_absent(build: Path | None = None) -> str:
    """Why :func:`load_library` gives None, in one sentence; empty when it gives a library."""
    if os.environ.get(ENVIRONMENT, "") == "numpy":
        return f"{ENVIRONMENT}=numpy asks to do without the C kernels"
    try:
        _open(build, os.environ.get(ENVIRONMENT, ""))
    except KernelLibraryError as error:
        return str(error)
    return ""


def _open(build: Path | None, path: str) -> KernelLibrary:
    file = library_file(build)
    if not file.exists():
        raise KernelLibraryError(
            f"{file} is not there: run 'make build'; without it the engine computes in numpy, slowly"
        )
    return KernelLibrary(file, path)
