# SPDX-License-Identifier: Apache-2.0
"""Rows of a quantised tensor as float32: C for the common types, the gguf package for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from reference_engine.gguf_tensor import GgufTensor
    from reference_engine.kernels.library import KernelLibrary

F32 = NDArray[np.float32]


def dequantize_rows(
    tensor: GgufTensor, row_ids: Sequence[int] | NDArray[Any], kernels: KernelLibrary | None = None
) -> F32:
    """The rows of those numbers as float32 [n, K], for an embedding lookup. IndexError for a row that is not there."""
    ids = np.ascontiguousarray(row_ids, dtype=np.int64)
    out = np.empty((ids.size, tensor.row_elements), np.float32)
    if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < tensor.n_rows:
        raise IndexError(f"rows {int(ids.min())} to {int(ids.max())} of {tensor.name}, which has {tensor.n_rows}")
    if kernels is not None and kernels.lib.ek_dequant_known(tensor.type.number):
        data = kernels.bytes(tensor.raw())
        kernels.lib.ek_dequant_rows(
            tensor.type.number, data, tensor.row_bytes, kernels.pointer(ids), ids.size, out.shape[1],
            kernels.floats(out), 1,
        )  # fmt: skip
        return out
    for i, row in enumerate(ids.tolist()):
        out[i] = tensor.rows(row, row + 1)[0]
    return out
