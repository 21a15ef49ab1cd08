# SPDX-License-Identifier: Apache-2.0
"""The unnormalised Walsh-Hadamard transform of rows, in blocks, with signs before it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


def transform_rows(rows: F32, signs: NDArray[np.int8], k_op: int, block: int) -> F32:
    """rows [n, K] times signs, padded with zeros to ``k_op``, each block transformed: butterflies x + y, x - y at
    distance 1, 2, 4, ... in float32. ``block`` is a power of two that divides ``k_op``."""
    n, k = rows.shape
    work = np.zeros((n, k_op), np.float32)
    np.multiply(rows, signs[:k].astype(np.float32), out=work[:, :k])
    distance = 1
    with np.errstate(over="ignore", invalid="ignore"):
        while distance < block:
            pairs = work.reshape(n, k_op // (2 * distance), 2, distance)
            total = pairs[:, :, 0] + pairs[:, :, 1]
            pairs[:, :, 1] = pairs[:, :, 0] - pairs[:, :, 1]
            pairs[:, :, 0] = total
            distance *= 2
    return work
