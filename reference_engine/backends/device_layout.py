# SPDX-License-Identifier: Apache-2.0
"""Operands in the layouts of the matmul API: padded rows, int4 pairs, the tiles of a native B."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def int4_pairs(values: NDArray[np.int8]) -> NDArray[np.uint8]:
    """Two int4 values in a byte, the even one in the low half (demo of 2.0.0-beta0 and later); the last axis halves."""
    bits = values.view(np.uint8) & np.uint8(15)
    return np.asarray(bits[..., 0::2] | (bits[..., 1::2] << np.uint8(4)), np.uint8)


def padded(rows: NDArray[Any], shape: tuple[int, int]) -> NDArray[Any]:
    """``rows`` in the corner of zeros of ``shape``."""
    if rows.shape == shape:
        return rows
    grown = np.zeros(shape, rows.dtype)
    grown[: rows.shape[0], : rows.shape[1]] = rows
    return grown


def native_tiles(rows: NDArray[Any], n: int, k: int) -> NDArray[Any]:
    """A weight [N, K], both padded, as native B: tiles [N/n, K/k, n, k], flat.

    For K up to the chip's segment limit; above it the runtime's own converter knows how the segments lie.
    """
    N, K = rows.shape
    return np.ascontiguousarray(rows.reshape(N // n, n, K // k, k).transpose(0, 2, 1, 3)).reshape(-1)
