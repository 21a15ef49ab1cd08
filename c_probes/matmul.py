# SPDX-License-Identifier: Apache-2.0
"""One matmul context: its memory as numpy arrays, its life cycle, every return code checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from c_probes.device_memory import DeviceMemory
from c_probes.errors import Disagreement, LibraryUnavailable, RknnError, UnsupportedByRuntime
from c_probes.log_capture import CapturedLog
from c_probes.names import QUERY_SDK_VERSION, Layout, SyncMode, TensorType
from c_probes.runtime_rules import INFO_BUFFER_BYTES, MatmulRequest, build_info, check_request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from c_probes.librknnrt import Librknnrt

OPERANDS = ("A", "B", "C")
_GUARD_BYTES = 1024
_INFO_BYTES = 64

_DTYPES = {
    TensorType.FLOAT32: "float32",
    TensorType.FLOAT16: "float16",
    TensorType.INT8: "int8",
    TensorType.UINT8: "uint8",
    TensorType.INT16: "int16",
    TensorType.UINT16: "uint16",
    TensorType.INT32: "int32",
    TensorType.UINT32: "uint32",
    TensorType.INT64: "int64",
    TensorType.BOOL: "bool",
    TensorType.INT4: "uint8",
    TensorType.BFLOAT16: "uint16",
}
"""numpy's view of each tensor type. INT4 is seen as bytes of two values, BFLOAT16 as its 16 bits."""


@dataclass(frozen=True)
class Operand:
    """One operand as the runtime describes it: ``dims`` (two when norm, three or four when native), size
    in bytes.
    """

    name: str
    dims: tuple[int, ...]
    size: int
    type: int


class Matmul:
    """A matmul context and its three buffers. Made by :meth:`Librknnrt.matmul`; for one thread at a time.

    ``A``, ``B`` and ``C`` are views into device memory, allocated when first used: typed as the runtime
    says and shaped as its dims where those fill the buffer, else flat. They die with the context; copy what
    must live longer.
    """

    def __init__(
        self,
        library: Librknnrt,
        request: MatmulRequest,
        shapes: tuple[tuple[int, int, int], ...],
        *,
        core_mask: int | None,
        memory_flags: int,
    ) -> None:
        self.request = request
        self._library = library
        self._ffi = library.ffi
        self._numpy = _require_numpy()
        self._memory_flags = memory_flags
        self._releases: list[tuple[str, Callable[[], object]]] = []
        self._memory: dict[str, Any] = {}
        self._arrays: dict[str, NDArray[Any]] = {}
        self._bound: set[str] = set()
        self._kept: list[Any] = []
        self._shapes = shapes
        self._current = 0
        check_request(request, library.rules)
        self._info_buffer, self._info = build_info(self._ffi, request, library.rules)
        self._attrs_buffer = self._ffi.new(f"char[{max(1, len(shapes)) * 996 + _GUARD_BYTES}]")
        self._attrs = self._ffi.cast("rknn_matmul_io_attr *", self._attrs_buffer)
        try:
            self._create()
            if core_mask is not None:
                self.set_core_mask(core_mask)
            if shapes:
                self._current = max(range(len(shapes)), key=lambda index: shapes[index][0])
                self.set_shape(*shapes[self._current])
        except BaseException:
            self._release_after_error()
            raise

    def _create(self) -> None:
        handle = self._ffi.new("rknn_matmul_ctx *")
        function = "rknn_matmul_create"
        extra: tuple[Any, ...] = ()
        if self._shapes:
            dynamic = self._library.rules.create_dynamic
            if dynamic is None:
                raise UnsupportedByRuntime(f"Runtime {self._library.rules.era} has no dynamic shapes.")
            function = dynamic
            extra = (len(self._shapes), self._ffi.new("rknn_matmul_shape[]", list(self._shapes)))
        log = self._library.call(function, handle, self._info, *extra, self._attrs, detail=str(self.request))
        self._handle = handle[0]
        if self._handle == 0:
            # Going on with context 0 crashes some runtimes (1.6.0 in rknn_create_mem; rknpu2 issue 88).
            self._library.remark(f"{function} returned 0 but gave no context ({self.request})")
            raise Disagreement(function, 0, f"it returned 0 but gave no context ({self.request})", log.lines)
        self._on_release("rknn_matmul_destroy", self._handle)
        self._check_guards(function)
        for name in OPERANDS:
            self.attr(name)

    def _check_guards(self, function: str) -> None:
        """A runtime with longer structs than ours writes past them; better to know than to be corrupted."""
        info = bytes(self._ffi.buffer(self._info_buffer))[_INFO_BYTES:INFO_BUFFER_BYTES]
        attrs = bytes(self._ffi.buffer(self._attrs_buffer))[-_GUARD_BYTES:]
        if any(info) or any(attrs):
            raise Disagreement(function, 0, "it wrote past the structs that the ABI header describes")

    def attr(self, name: str) -> Operand:
        """The runtime's description of operand ``A``, ``B`` or ``C`` at the current shape."""
        raw = getattr(self._attrs[self._current], name)
        if raw.n_dims > len(raw.dims):
            raise Disagreement(
                "rknn_matmul_create", 0, f"it says {raw.n_dims} dimensions for {name}, the limit is {len(raw.dims)}"
            )
        label = self._ffi.string(raw.name).decode("utf-8", "replace")
        return Operand(label, tuple(raw.dims[i] for i in range(raw.n_dims)), int(raw.size), int(raw.type))

    @property
    def A(self) -> NDArray[Any]:
        return self._array("A")

    @property
    def B(self) -> NDArray[Any]:
        return self._array("B")

    @property
    def C(self) -> NDArray[Any]:
        return self._array("C")

    def load(self, *, A: NDArray[Any] | None = None, B: NDArray[Any] | None = None) -> None:
        """Copies arrays in, makes them visible to the device, and binds them.

        The arrays have the dtype and the number of elements of the views; their layout is the context's.
        Binding anew is what makes a changed NORM operand count: it is converted at that moment.
        """
        for name, array in (("A", A), ("B", B)):
            if array is None:
                continue
            view = self._array(name)
            if array.dtype != view.dtype or array.size != view.size:
                raise ValueError(
                    f"{name} needs {view.size} elements of {view.dtype}, not {array.size} of {array.dtype}."
                )
            view[...] = array.reshape(view.shape)
            if self._library.has("rknn_mem_sync"):
                self.sync(name, SyncMode.TO_DEVICE)
            self.bind(name)

    def result(self) -> NDArray[Any]:
        """A copy of C, made visible to the CPU first. Its layout is the context's."""
        if self._library.has("rknn_mem_sync"):
            self.sync("C", SyncMode.FROM_DEVICE)
        copy: NDArray[Any] = self._array("C").copy()
        return copy

    def bind(self, *names: str) -> None:
        """``rknn_matmul_set_io_mem`` for the operands named, all three by default."""
        for name in names or OPERANDS:
            self._array(name)
            attr = self._ffi.addressof(self._attrs[self._current], name)
            self._call("rknn_matmul_set_io_mem", self._memory[name], attr, detail=f"operand {name}, {self.request}")
            self._bound.add(name)

    def memory(self, size: int) -> DeviceMemory:
        """Memory that other contexts of this process may use as well; it is the caller's to close, before this one."""
        self._require_open()
        return DeviceMemory(self._library, self._handle, size)

    def use(self, name: str, memory: DeviceMemory, *, capture: bool = True) -> None:
        """Binds an operand to memory that :meth:`memory` made, of this context or another one of its IOMMU domain."""
        attr = self.attr(name)
        if memory.size < attr.size:
            raise ValueError(f"{name} needs {attr.size} bytes, not {memory.size}.")
        raw = self._ffi.addressof(self._attrs[self._current], name)
        self._call("rknn_matmul_set_io_mem", memory.raw, raw, detail=f"operand {name}, {self.request}", capture=capture)
        self._bound.add(name)

    def sync(self, name: str, mode: int) -> None:
        """``rknn_mem_sync`` of one operand's memory; absent before runtime 1.6.0 (MissingSymbol)."""
        self._array(name)
        self._call("rknn_mem_sync", self._memory[name], int(mode), detail=f"operand {name}, mode {int(mode)}")

    def run(self, *, capture: bool = True) -> CapturedLog:
        """Runs the matmul once. Operands that were never bound are bound first.

        ``capture`` off for timed or concurrent runs: see :meth:`Librknnrt.call`.
        """
        missing = [name for name in OPERANDS if name not in self._bound]
        if missing:
            self.bind(*missing)
        return self._call("rknn_matmul_run", detail=str(self.request), capture=capture)

    def set_core_mask(self, core_mask: int) -> CapturedLog:
        """Asks for a core. A mask of several cores is refused, or accepted and ignored, by every release
        seen.
        """
        return self._call("rknn_matmul_set_core_mask", int(core_mask), detail=f"core mask {int(core_mask):#x}")

    def set_quant_params(
        self, name: str, scale: NDArray[Any] | list[float], zero_point: NDArray[Any] | list[int] | None = None
    ) -> None:
        """Sets scales (float32) and zero points (int32) of an operand: one per layer, N per channel,
        N*K/group per group.
        """
        params = self._quant_params(name)
        scales = self._numpy.ascontiguousarray(scale, dtype="float32").ravel()
        zeros = self._numpy.zeros_like(scales, dtype="int32") if zero_point is None else zero_point
        zeros = self._numpy.ascontiguousarray(zeros, dtype="int32").ravel()
        params.scale, params.scale_len = self._ffi.from_buffer("float[]", scales), len(scales)
        params.zp, params.zp_len = self._ffi.from_buffer("int32_t[]", zeros), len(zeros)
        self._kept += [params, scales, zeros]
        detail = f"operand {name}, {len(scales)} scales, {len(zeros)} zero points"
        self._call("rknn_matmul_set_quant_params", params, detail=detail)

    def get_quant_params(self, name: str) -> float:
        """The normalised scale of an operand: defined for type 2 with per-channel B only."""
        scale = self._ffi.new("float *")
        params = self._quant_params(name)
        self._call("rknn_matmul_get_quant_params", params, scale, detail=f"operand {name}")
        return float(scale[0])

    def set_shape(self, M: int, K: int, N: int) -> None:
        """Chooses one of the dynamic shapes. All operands have to be bound anew after that."""
        if (M, K, N) not in self._shapes:
            raise ValueError(f"Shape {M}x{K}x{N} is none of those this context was made for.")
        shape = self._ffi.new("rknn_matmul_shape *", (M, K, N))
        self._call("rknn_matmul_set_dynamic_shape", shape, detail=f"shape {M}x{K}x{N}")
        self._current = self._shapes.index((M, K, N))
        self._arrays.clear()
        self._bound.clear()

    def convert_B(self, source: NDArray[Any], into: NDArray[Any] | None = None) -> NDArray[Any]:
        """B in NATIVE layout, made by the runtime from a row-major ``source[K, N]``.

        INT4 comes unpacked, one value per byte: packed input makes the converter read past its end
        (rknn-toolkit2 pull 412). ``into`` must not overlap the source: conversion in place corrupts. The
        signature differs between 2.0 (seven arguments) and 2.1 (five); the version decides which one is
        called.
        """
        np, attr = self._numpy, self.attr("B")
        if self.request.B_layout != Layout.NATIVE:
            raise ValueError("convert_B needs a context with B_layout NATIVE.")
        arguments = self._library.rules.converter_arguments
        if arguments is None:
            raise UnsupportedByRuntime(f"Runtime {self._library.rules.era} has no converter for B.")
        width = 1 if attr.type == TensorType.INT4 else np.dtype(_dtype(attr.type)).itemsize
        flat = np.ascontiguousarray(source)
        if flat.nbytes != self.request.K * self.request.N * width:
            raise ValueError(
                f"B needs {self.request.K}x{self.request.N} elements of {width} bytes, not {flat.nbytes} bytes."
            )
        target = np.zeros(attr.size, "uint8") if into is None else into
        if target.nbytes < attr.size or not target.flags.c_contiguous or not target.flags.writeable:
            raise ValueError(f"The target of convert_B needs {attr.size} contiguous, writable bytes.")
        if np.may_share_memory(source, target) or np.may_share_memory(flat, target):
            raise ValueError("convert_B cannot work in place: source and target overlap, which corrupts B.")
        pointers = [self._ffi.cast("void *", array.ctypes.data) for array in (flat, target)]
        name = "rknn_B_normal_layout_to_native_layout"
        K, N = self.request.K, self.request.N
        if arguments == 5:
            self._library.call(name, *pointers, K, N, self._info, detail=str(self.request))
        elif len(attr.dims) != 4:
            raise Disagreement("rknn_matmul_create", 0, f"it gives native B the dimensions {attr.dims}")
        else:
            old = self._ffi.cast("rknn_kit_converter_2_0", self._library.address(name))
            code = int(old(*pointers, K, N, attr.dims[2], attr.dims[3], self.request.type))
            if code != 0:
                raise RknnError(name, code, str(self.request))
        return target.view(_dtype(attr.type)) if into is None else target

    def sdk_version(self) -> tuple[str, str]:
        """API and driver version by ``rknn_query``. Whether a matmul context answers is up to the
        runtime.
        """
        answer = self._ffi.new("rknn_sdk_version *")
        size = self._ffi.sizeof("rknn_sdk_version")
        self._call("rknn_query", QUERY_SDK_VERSION, answer, size, detail="RKNN_QUERY_SDK_VERSION")
        api, driver = (
            self._ffi.string(text).decode("utf-8", "replace") for text in (answer.api_version, answer.drv_version)
        )
        return api, driver

    def close(self) -> None:
        """Frees memory, then the context, in reverse order of their making, all of them even after an error.

        Raises the first error. Doing it twice is no error.
        """
        errors = self._release()
        if errors:
            raise errors[0]

    def __enter__(self) -> Matmul:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._release_after_error()

    def _release_after_error(self) -> None:
        """As close, but what goes wrong becomes a remark, so that it does not hide the error on its way."""
        for error in self._release():
            self._library.remark(f"While cleaning up after an error: {error}")

    def _release(self) -> list[RknnError]:
        errors: list[RknnError] = []
        self._arrays.clear()
        while self._releases:
            _, release = self._releases.pop()
            try:
                release()
            except RknnError as error:
                errors.append(error)
        self._memory.clear()
        self._bound.clear()
        self._kept.clear()
        return errors

    def _on_release(self, function: str, *arguments: Any) -> None:
        detail = str(self.request)
        self._releases.append((function, lambda: self._library.call(function, *arguments, detail=detail)))

    def _call(self, function: str, *arguments: Any, detail: str, capture: bool = True) -> CapturedLog:
        self._require_open()
        return self._library.call(function, self._handle, *arguments, detail=detail, capture=capture)

    def _require_open(self) -> None:
        if not self._releases:
            raise ValueError("This matmul context is closed.")

    def _array(self, name: str) -> NDArray[Any]:
        self._require_open()
        if name not in self._arrays:
            attr = self.attr(name)
            memory = self._allocate(name)
            start = self._ffi.cast("char *", memory.virt_addr) + memory.offset
            view = self._numpy.frombuffer(self._ffi.buffer(start, attr.size), dtype=_dtype(attr.type))
            count = 1
            for dim in attr.dims:
                count *= dim
            self._arrays[name] = view.reshape(attr.dims) if count == view.size else view
        return self._arrays[name]

    def _allocate(self, name: str) -> Any:
        """Memory of one operand, large enough for every shape of the context."""
        if name in self._memory:
            return self._memory[name]
        size = max(int(getattr(self._attrs[i], name).size) for i in range(max(1, len(self._shapes))))
        detail = f"operand {name}, {size} bytes"
        if self._memory_flags:
            function = "rknn_create_mem2"
            memory = self._library.call_pointer(function, self._handle, size, self._memory_flags, detail=detail)
        else:
            function = "rknn_create_mem"
            memory = self._library.call_pointer(function, self._handle, size, detail=detail)
        self._on_release("rknn_destroy_mem", self._handle, memory)
        if memory.virt_addr == self._ffi.NULL or memory.size < size:
            raise Disagreement(
                function,
                None,
                f"{detail}: it gave {memory.size} bytes at {self._ffi.cast('uintptr_t', memory.virt_addr):#x}",
            )
        self._memory[name] = memory
        return memory

    def _quant_params(self, name: str) -> Any:
        params = self._ffi.new("rknn_quant_params *")
        params.name = (self.attr(name).name or name).encode()
        return params


def _dtype(tensor_type: int) -> str:
    try:
        return _DTYPES[TensorType(tensor_type)]
    except ValueError:
        return "uint8"  # a type that no release names: bytes are all there is to say


def _require_numpy() -> Any:
    try:
        import numpy  # noqa: PLC0415 - its absence must cost only this feature
    except ImportError as error:
        raise LibraryUnavailable(
            "numpy-missing", "Matmul contexts need the Python package numpy; install it with pip."
        ) from error
    return numpy
