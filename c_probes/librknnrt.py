# SPDX-License-Identifier: Apache-2.0
"""Opens librknnrt through cffi and calls it with every signal checked.

    with open_library(path, device_present=True) as library:
        with library.matmul(64, 4096, 4096, MatmulType.INT8_MM_INT8_TO_INT32) as matmul:
            matmul.load(A=a, B=b)
            matmul.run()
            c = matmul.result()

Symbols are looked up when they are first called, so an older runtime lacks a capability and nothing else.
Return code, out-pointer and log are three independent signals of one call (rknn-llm issue 156: success was
returned after a logged failure); where they contradict each other, a remark is kept in
:attr:`Librknnrt.remarks`.

A call may crash, hang or end the process: make it in a child (probes.child.call_in_child), never in the
main process.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from c_probes.abi import load_ffi
from c_probes.errors import (
    BindingError,
    Disagreement,
    LibraryUnavailable,
    MissingSymbol,
    RknnError,
    UnsupportedByRuntime,
)
from c_probes.library_file import LibraryFile, describe_library
from c_probes.library_search import find_libraries, loadable_here
from c_probes.log_capture import CapturedLog, LogCapture
from c_probes.matmul import Matmul
from c_probes.names import CoreMask, Layout, MatmulType, QuantType, SyncMode, TensorType, error_name
from c_probes.runtime_rules import MatmulRequest, rules_for

__all__ = [
    "BindingError",
    "CoreMask",
    "Disagreement",
    "Layout",
    "LibraryUnavailable",
    "Librknnrt",
    "Matmul",
    "MatmulRequest",
    "MatmulType",
    "MissingSymbol",
    "QuantType",
    "RknnError",
    "SyncMode",
    "TensorType",
    "UnsupportedByRuntime",
    "error_name",
    "open_library",
]

LIBRARY_NAME = "librknnrt.so"

_ADDRESS_OF_ANY = ("rknn_matmul_create", "rknn_create_mem", "rknn_destroy_mem", "rknn_query", "rknn_mem_sync")


class Librknnrt:
    """One opened runtime. Made by :func:`open_library`.

    ``path`` is the file that the loader really mapped, ``file`` what is known of it without loading
    (version text, sha256, exports), ``shadowed`` the other copies on the loader path. ``version`` is a
    tuple such as ``(2, 3, 2)``, or None when the file does not say.
    """

    def __init__(
        self,
        ffi: Any,
        handle: Any,
        file: LibraryFile,
        shadowed: tuple[LibraryFile, ...],
        log_file: Path | None,
    ) -> None:
        self.ffi = ffi
        self.file = file
        self.path = file.real_path
        self.shadowed = shadowed
        self.version = file.version
        self.rules = rules_for(file.version)
        self.remarks: list[str] = []
        self._handle = handle
        libc = ffi.dlopen(None)
        self._capture = LogCapture(lambda: libc.fflush(ffi.NULL), log_file)

    @property
    def version_text(self) -> str:
        """The version as the library says it, or ``unknown version``."""
        return self.file.version_text or "unknown version"

    @property
    def is_mock(self) -> bool:
        """Whether the library says that it is a mock."""
        return self.file.is_mock

    def has(self, symbol: str) -> bool:
        """Whether this runtime exports ``symbol``. False as well for a symbol that the ABI header does
        not declare.
        """
        try:
            self._symbol(symbol)
        except MissingSymbol:
            return False
        return True

    def call(self, function: str, *arguments: Any, detail: str, capture: bool = True) -> CapturedLog:
        """Calls a function that returns a code. Raises :class:`RknnError` for any but 0.

        ``detail`` is what was asked, for the error's sentence. ``capture`` off leaves the library's output
        alone: for timed runs, and for runs of several threads, which captures would make wait for each
        other.
        """
        symbol = self._symbol(function)
        if not capture:
            code, log = int(symbol(*arguments)), CapturedLog()
        else:
            with self._capture.during() as log:
                code = int(symbol(*arguments))
        if code != 0:
            raise RknnError(function, code, detail, log.lines)
        if log.errors:
            self.remark(f"{function} returned 0 but logged an error ({detail}): {log.errors[0]}")
        return log

    def call_pointer(self, function: str, *arguments: Any, detail: str) -> Any:
        """Calls a function that returns a pointer. Raises :class:`RknnError` for NULL."""
        symbol = self._symbol(function)
        with self._capture.during() as log:
            pointer = symbol(*arguments)
        if pointer == self.ffi.NULL:
            raise RknnError(function, None, f"{detail}: it returned NULL", log.lines)
        if log.errors:
            self.remark(f"{function} gave a pointer but logged an error ({detail}): {log.errors[0]}")
        return pointer

    def address(self, symbol: str) -> Any:
        """The address of an exported function, to be cast to another signature than the header's."""
        self._symbol(symbol)
        return self.ffi.addressof(self._handle, symbol)

    def remark(self, text: str) -> None:
        """Keeps a contradiction between signals, for the report."""
        self.remarks.append(text)

    def matmul(
        self,
        M: int,
        K: int,
        N: int,
        type: int,
        *,
        B_layout: int = Layout.NORM,
        AC_layout: int = Layout.NORM,
        B_quant: int = QuantType.PER_LAYER_SYM,
        AC_quant: int = QuantType.PER_LAYER_SYM,
        group_size: int = 0,
        iommu_domain: int = 0,
        core_mask: int | None = None,
        memory_flags: int = 0,
    ) -> Matmul:
        """A matmul context: A[M,K] x B[K,N] -> C[M,N]. Close it, or use it in a ``with`` statement.

        ``core_mask`` None leaves the choice to the runtime. Raises :class:`RknnError` when the runtime
        refuses, :class:`UnsupportedByRuntime` when this version has no field for what is asked,
        :class:`MissingSymbol`.
        """
        request = MatmulRequest(M, K, N, int(type), B_layout, AC_layout, B_quant, AC_quant, group_size, iommu_domain)
        return Matmul(self, request, (), core_mask=core_mask, memory_flags=memory_flags)

    def matmul_dynamic(
        self,
        shapes: Sequence[tuple[int, int, int]],
        type: int,
        *,
        B_layout: int = Layout.NORM,
        AC_layout: int = Layout.NORM,
        iommu_domain: int = 0,
        core_mask: int | None = None,
        memory_flags: int = 0,
    ) -> Matmul:
        """A matmul context for several ``(M, K, N)``; K and N must be the same in all of them (librknnrt
        2.3.2).

        Choose one with :meth:`Matmul.set_shape` before binding; the largest one is current at first.
        """
        wanted = tuple((int(M), int(K), int(N)) for M, K, N in shapes)
        if not wanted:
            raise ValueError("matmul_dynamic needs at least one shape (M, K, N).")
        M, K, N = (max(shape[axis] for shape in wanted) for axis in range(3))
        request = MatmulRequest(M, K, N, int(type), B_layout, AC_layout, iommu_domain=iommu_domain)
        return Matmul(self, request, wanted, core_mask=core_mask, memory_flags=memory_flags)

    def close(self) -> None:
        """Ends the use of this object. The library stays mapped: unloading C++ runtimes is a risk
        without a gain.
        """
        self._capture.close()

    def __enter__(self) -> Librknnrt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _symbol(self, name: str) -> Any:
        try:
            return getattr(self._handle, name)
        except AttributeError:
            raise MissingSymbol(name, self.path, self.version_text) from None


def open_library(
    path: str | Path | None = None,
    *,
    device_present: bool = False,
    force: bool = False,
    env: Mapping[str, str] | None = None,
    log_file: Path | None = None,
) -> Librknnrt:
    """Opens ``path``, or with None the library that the loader finds, and tells which file that was.

    A library that does not call itself a mock is refused unless the caller has found an NPU device node
    (``device_present``) or a person asked for this very file (``force``): the vendor runtime, called as
    root where no node exists, makes /dev/dri and nodes in it (observed with 1.4.0 and 1.5.2, which bundle
    libdrm).

    ``log_file`` is where captured output is appended and stays, so that it survives a crash of this process.
    Raises :class:`LibraryUnavailable`; its ``kind`` says in one word why.
    """
    ffi = load_ffi()
    known: list[LibraryFile] = []
    if path is None:
        known = [library for library in find_libraries(env=env) if library.kind == "librknnrt"]
        wanted = next((library for library in known if library.taken), None)
        if wanted is None:
            raise LibraryUnavailable("not-found", _nothing_found(known))
        # By name the loader might take another file than the one that was looked at; loading that one to find out is
        # what must not happen where no device is.
        target = LIBRARY_NAME if env is None and (device_present or force) else wanted.path
    else:
        target = str(Path(path).absolute())
        wanted = describe_library(Path(target), kind="librknnrt")
        if wanted.size is None:
            raise LibraryUnavailable("not-found", f"The library {target} cannot be used: {wanted.problem}.")
        if wanted.elf_machine is not None and not loadable_here(wanted):
            raise LibraryUnavailable(
                "wrong-machine",
                f"The library {target} is for {wanted.elf_machine} ({wanted.elf_class} bits); "
                f"this process runs on {platform.machine()}.",
            )
    _refuse_unless_allowed(wanted, device_present, force)
    try:
        handle = ffi.dlopen(target, ffi.RTLD_NOW | ffi.RTLD_LOCAL)
    except OSError as error:
        # cffi adds its own search by another name; only what the loader said is to the point.
        said = str(error).partition("  Additionally, ")[0].rstrip(".")
        raise LibraryUnavailable("not-a-library", f"{target} cannot be loaded: {said}.") from error
    mapped = _mapped_path(ffi, handle)
    if mapped is not None and mapped != wanted.real_path:
        # A link, or the loader knew better: a library of that SONAME was loaded before, or LD_LIBRARY_PATH has changed
        # since this process started.
        wanted = describe_library(Path(mapped), kind="librknnrt")
        _refuse_unless_allowed(wanted, device_present, force)
    others = tuple(other for other in known if other.on_loader_path and other.real_path != wanted.real_path)
    return Librknnrt(ffi, handle, wanted, others, log_file)


def _nothing_found(known: list[LibraryFile]) -> str:
    if not known:
        return f"No {LIBRARY_NAME} was found; install the runtime, or name the file."
    places = ", ".join(library.path for library in known[:3])
    return (
        f"No {LIBRARY_NAME} that this process could load lies on the loader path, but there is {places}; "
        "run ldconfig for its directory, set LD_LIBRARY_PATH, or name the file."
    )


def _refuse_unless_allowed(library: LibraryFile, device_present: bool, force: bool) -> None:
    if library.is_mock or device_present or force:
        return
    raise LibraryUnavailable(
        "refused",
        f"{library.path} is not loaded: no NPU device node was found, and without one this library may create "
        "device nodes. Name the file to use it all the same.",
    )


def _mapped_path(ffi: Any, handle: Any) -> str | None:
    """The file behind ``handle``, as the loader has it; None when the library has no function that we
    know.
    """
    libc = ffi.dlopen(None)
    for name in _ADDRESS_OF_ANY:
        try:
            address = ffi.cast("void *", ffi.addressof(handle, name))
            info = ffi.new("rknn_kit_dl_info *")
            if libc.dladdr(address, info) and info.dli_fname != ffi.NULL:
                return str(Path(ffi.string(info.dli_fname).decode("utf-8", "surrogateescape")).resolve())
        except AttributeError:
            continue
    return None
