# SPDX-License-Identifier: Apache-2.0
"""One tensor of an open GGUF file: its bytes stay in the file, its numbers come in blocks of rows."""

from __future__ import annotations

import importlib
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reference_engine.gguf_errors import TRUNCATED, GgufError, quoted
from reference_engine.gguf_types import TensorType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_ELEMENTS = 1 << 20
"""Elements that ``row_blocks`` yields at a time: 4 MiB of float32."""

_CALL_ELEMENTS = 1 << 17
"""Elements in one call of the gguf package: its temporaries, four to six times the result, then stay in the cache. They
go in as one row, because it loops in Python over every 16 rows (Q8_0: 50 Melem/s by rows of one block, 600 so)."""

_PLAIN = {"F32": "<f4", "F16": "<f2", "F64": "<f8", "I8": "<i1", "I16": "<i2", "I32": "<i4", "I64": "<i8"}


class MissingPackage(RuntimeError):
    """An optional package is not installed; the message names it and the command that brings it."""


class NoDequantizer(ValueError):
    """The gguf package cannot turn this tensor type into floats; the message names tensor and type."""


@dataclass(frozen=True)
class GgufTensor:
    """One tensor.

    ``dims`` in GGUF order, ``dims[0]`` the row length K; ``shape`` the same reversed, as numpy counts, so that a weight
    of dims (K, N) has shape (N, K). ``data_at`` is the byte of ``path`` where the data begins, ``n_bytes`` its length.
    ``header_at`` is the byte of its row in the tensor table.
    """

    name: str
    dims: tuple[int, ...]
    type: TensorType
    n_bytes: int
    data_at: int
    header_at: int
    path: Path
    mapped: mmap.mmap

    @property
    def shape(self) -> tuple[int, ...]:
        return self.dims[::-1]

    @property
    def n_elements(self) -> int:
        return self.n_bytes // self.type.block_bytes * self.type.block_elements

    @property
    def row_elements(self) -> int:
        return self.dims[0]

    @property
    def row_bytes(self) -> int:
        return self.dims[0] // self.type.block_elements * self.type.block_bytes

    @property
    def n_rows(self) -> int:
        """Rows over all outer dimensions."""
        return self.n_elements // self.dims[0]

    def data(self) -> memoryview:
        """The bytes of the tensor, not copied.

        GgufError NPU-F015 where the file was opened for its header only and ends before.
        """
        if self.data_at + self.n_bytes > len(self.mapped):
            raise GgufError(
                TRUNCATED,
                f"the data of tensor {quoted(self.name)} would end at byte {self.data_at + self.n_bytes}; the file has "
                f"{len(self.mapped)}",
                len(self.mapped),
                self.path,
            )
        return memoryview(self.mapped)[self.data_at : self.data_at + self.n_bytes]

    def raw(self) -> NDArray[np.uint8]:
        """The bytes as uint8 [n_rows, row_bytes], not copied, read-only."""
        import numpy as np  # noqa: PLC0415  the header is read without numpy; only this needs it

        return np.frombuffer(self.data(), dtype=np.uint8).reshape(self.n_rows, self.row_bytes)

    def rows(self, start: int, stop: int) -> NDArray[np.float32]:
        """Rows ``start`` to ``stop`` as float32 [stop - start, row_elements].

        IndexError outside 0 <= start <= stop <= n_rows. MissingPackage without the gguf package (types other than plain
        floats and integers), NoDequantizer for a type it does not know.
        """
        if not 0 <= start <= stop <= self.n_rows:
            raise IndexError(f"rows {start} to {stop} of tensor {quoted(self.name)}, which has {self.n_rows}")
        per_row = self.row_elements // self.type.block_elements
        return self._floats(start * per_row, stop * per_row).reshape(stop - start, self.row_elements)

    def row_blocks(self, elements: int = BLOCK_ELEMENTS) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """(first row, float32 rows) over the whole tensor, at most ``elements`` at a time, at least one row."""
        step = max(1, elements // self.row_elements)
        for start in range(0, self.n_rows, step):
            yield start, self.rows(start, min(start + step, self.n_rows))

    def dequantize(self) -> NDArray[np.float32]:
        """The whole tensor as float32 of ``shape``. Memory: the result and a few MiB."""
        return self._floats(0, self.n_bytes // self.type.block_bytes).reshape(self.shape)

    def _floats(self, first: int, last: int) -> NDArray[np.float32]:
        """Quantisation blocks ``first`` to ``last`` as flat float32; they lie one after the other through all rows."""
        import numpy as np  # noqa: PLC0415  the header is read without numpy; only this needs it

        size = self.type.block_bytes
        raw = np.frombuffer(self.data()[first * size : last * size], dtype=np.uint8)
        plain = _PLAIN.get(self.type.name)
        if plain is not None:
            return raw.view(plain).astype(np.float32)
        dequantize, width = _dequantizer(self), self.type.block_elements
        out = np.empty((last - first) * width, dtype=np.float32)
        step = _CALL_ELEMENTS // width
        for start in range(0, last - first, step):
            stop = min(start + step, last - first)
            row = raw[start * size : stop * size].reshape(1, -1)
            out[start * width : stop * width] = dequantize(row).reshape(-1)
        return out


def _dequantizer(tensor: GgufTensor) -> Any:
    """The function of the gguf package that turns uint8 [rows, row bytes] of this type into float32 rows."""
    try:
        quants = importlib.import_module("gguf.quants")
        types = importlib.import_module("gguf.constants").GGMLQuantizationType
    except ImportError as error:
        raise MissingPackage(
            f"Turning {tensor.type.name} weights into floats needs the gguf package, which cannot be imported "
            f"({error}): in the checkout: pip install '.[engine]'"
        ) from error
    try:
        kind = types(tensor.type.number)
    except ValueError:
        raise _no_dequantizer(tensor) from None

    def dequantize(blocks: Any) -> Any:
        try:
            return quants.dequantize(blocks, kind)
        except NotImplementedError:
            raise _no_dequantizer(tensor) from None

    return dequantize


def _no_dequantizer(tensor: GgufTensor) -> NoDequantizer:
    return NoDequantizer(
        f"Tensor {quoted(tensor.name)} has type {tensor.type.name}, which the installed gguf package cannot "
        "dequantise; try a newer one, or requantise the model with llama-quantize"
    )
