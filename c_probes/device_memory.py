# SPDX-License-Identifier: Apache-2.0
"""Memory of the runtime that several matmul contexts use, as the back ends keep weights and activations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from c_probes.errors import Disagreement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from c_probes.librknnrt import Librknnrt


class DeviceMemory:
    """One block of ``rknn_create_mem``, made by a context that must outlive it; see :meth:`Matmul.memory`.

    ``bytes`` is the block as uint8, a view that dies with it. ``raw`` is the ``rknn_tensor_mem *``.
    """

    def __init__(self, library: Librknnrt, context: Any, size: int) -> None:
        import numpy as np  # noqa: PLC0415 - its absence must cost only this feature

        self._library, self._context = library, context
        detail = f"{size} bytes"
        self.raw = library.call_pointer("rknn_create_mem", context, size, detail=detail)
        ffi = library.ffi
        if self.raw.virt_addr == ffi.NULL or self.raw.size < size:
            raise Disagreement("rknn_create_mem", None, f"{detail}: it gave {self.raw.size} bytes")
        start = ffi.cast("char *", self.raw.virt_addr) + self.raw.offset
        self.bytes: NDArray[Any] = np.frombuffer(ffi.buffer(start, size), dtype=np.uint8)
        self.size = size
        self._syncs = library.has("rknn_mem_sync")

    def sync(self, mode: int, *, capture: bool = True) -> None:
        """``rknn_mem_sync``; nothing on runtimes before 1.6.0, which do not have it."""
        if self._syncs:
            detail = f"{self.size} bytes, mode {int(mode)}"
            self._library.call("rknn_mem_sync", self._context, self.raw, int(mode), detail=detail, capture=capture)

    def close(self) -> None:
        """Frees the block."""
        self._library.call("rknn_destroy_mem", self._context, self.raw, detail=f"{self.size} bytes")
