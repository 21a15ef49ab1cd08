# SPDX-License-Identifier: Apache-2.0
"""The one place where int8 meets int8 in numpy.

numpy multiplies int8 by int8 in int8 and wraps silently, and a float32 product is exact only up to K = 1040; here the
factors go through float64, where every partial sum stays below 2^53 for any K below 5e11, in any order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_BLOCK_ELEMENTS = 1 << 20  # of the weight, widened at a time: 8 MiB


def int8_product(a: NDArray[np.int8], b: NDArray[np.int8]) -> NDArray[np.int32]:
    """a [M, K] times b [N, K] transposed, int32 [M, N], exact modulo 2^32."""
    wide = a.astype(np.float64)
    sums = np.empty((a.shape[0], b.shape[0]), np.int64)
    step = max(1, _BLOCK_ELEMENTS // max(1, b.shape[1]))
    for n in range(0, b.shape[0], step):
        sums[:, n : n + step] = np.matmul(wide, b[n : n + step].astype(np.float64).T)
    return sums.astype(np.int32)


def to_int16(sums: NDArray[np.int32], overflow: str) -> NDArray[np.int16]:
    """What an int16 accumulator holds: ``saturate`` to its ends or ``wrap`` modulo 2^16 (the chip's is unknown)."""
    held = np.clip(sums, -32768, 32767) if overflow == "saturate" else sums
    return held.astype(np.int16)
