# SPDX-License-Identifier: Apache-2.0
"""The int8 kernels of the mock, built as a library of their own, and their functions in Python."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SOURCES = Path(__file__).resolve().parents[2] / "c_probes" / "mock" / "kernels"
C_FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread", "-I", str(SOURCES))
PATHS = ("avx512-vnni", "avx-vnni", "avx2", "neon-dot", "neon", "c")


class BuildError(RuntimeError):
    """The compiler refused; the message holds its command and output."""


def compile_c(out: Path, sources: Sequence[Path], cc: Sequence[str] = ("gcc",), flags: Sequence[str] = ()) -> Path:
    """Compile and link `sources` into `out` with the kit's C flags and `flags`; returns `out`."""
    command = [*cc, *C_FLAGS, *flags, "-o", str(out), *map(str, sources), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{' '.join(command)}\n{done.stderr}")
    return out


def build_library(out: Path, cc: Sequence[str] = ("gcc",), flags: Sequence[str] = (), sources: Path = SOURCES) -> Path:
    """Build all kernels found in `sources` into the shared library `out`."""
    out.parent.mkdir(parents=True, exist_ok=True)
    return compile_c(out, sorted(sources.glob("*.c")), cc, ("-shared", "-fPIC", *flags))


class Packed:
    """B as the kernels read it; keeps its shape. Freed with `free` or when collected."""

    def __init__(self, library: ctypes.CDLL, b: NDArray[np.int8]) -> None:
        self._library = library
        self.K, self.N = b.shape
        self.handle: int | None = library.mock_gemm_s8_pack(b.ctypes.data, self.K, self.N)
        if self.handle is None:
            raise MemoryError(f"no memory to pack B of {self.K} x {self.N} bytes")

    def free(self) -> None:
        """Free the packed copy; later calls do nothing."""
        handle, self.handle = self.handle, None
        if handle is not None:
            self._library.mock_gemm_s8_free(handle)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.free()


class Kernels:
    """The functions of gemm_s8.h in the shared library at `path`."""

    def __init__(self, path: Path) -> None:
        self._library = library = ctypes.CDLL(str(path))
        size, pointer = ctypes.c_size_t, ctypes.c_void_p
        library.mock_gemm_s8_pack.restype = pointer
        library.mock_gemm_s8_pack.argtypes = [pointer, size, size]
        library.mock_gemm_s8_free.restype = None
        library.mock_gemm_s8_free.argtypes = [pointer]
        library.mock_gemm_s8.argtypes = [pointer, size, pointer, pointer, size, size, ctypes.c_int]
        library.mock_gemm_s8_path.restype = ctypes.c_char_p
        library.mock_gemm_s8_error.restype = ctypes.c_char_p
        library.mock_gemm_s8_force.argtypes = [ctypes.c_char_p]

    def force(self, name: str | None) -> bool:
        """Force a path by name (None: automatic); False when it is unknown or this CPU lacks it."""
        return bool(self._library.mock_gemm_s8_force(name.encode() if name else None) == 0)

    def path(self) -> str | None:
        """Name of the path in use, None when RKNN_MOCK_KERNEL names no usable one."""
        name: bytes | None = self._library.mock_gemm_s8_path()
        return name.decode() if name else None

    def error(self) -> str | None:
        """What is wrong with RKNN_MOCK_KERNEL, None when nothing is."""
        text: bytes | None = self._library.mock_gemm_s8_error()
        return text.decode() if text else None

    def pack(self, b: NDArray[np.int8]) -> Packed:
        """Pack B, C-contiguous int8 [K, N]. Raises MemoryError."""
        return Packed(self._library, b)

    def can_pack(self, K: int, N: int) -> bool:
        """Whether a B of that size could be packed; only for sizes that cannot, since B is not there."""
        return self._library.mock_gemm_s8_pack(None, K, N) is not None

    def multiply(self, a: NDArray[np.int8], b: Packed, c: NDArray[np.int32], threads: int) -> int:
        """c[M, N] = a[M, K] x B. Rows may lie apart (views of wider arrays); columns must be adjacent."""
        lda, ldc = a.strides[0] // a.itemsize, c.strides[0] // c.itemsize
        rc: int = self._library.mock_gemm_s8(a.ctypes.data, lda, b.handle, c.ctypes.data, ldc, a.shape[0], threads)
        return rc
