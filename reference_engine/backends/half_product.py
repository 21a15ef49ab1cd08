# SPDX-License-Identifier: Apache-2.0
"""Products of fp16 factors with float32 sums, in the order of the kit's mock librknnrt.

Order (c_probes/mock/src/gemm_float.c): for each output one sum in rising k from +0, product and sum each rounded to
float32. What order the chip uses is not known; the mock is what this can be held against.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]


def half_product(a: NDArray[np.float16], b: NDArray[np.float16]) -> F32:
    """a [M, K] times b [N, K] transposed, float32 [M, N]."""
    left, right = a.astype(np.float32), np.ascontiguousarray(b.T).astype(np.float32)
    sums = np.zeros((a.shape[0], b.shape[0]), np.float32)
    part = np.empty_like(sums)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(left.shape[1]):
            np.multiply(left[:, k, None], right[k], out=part)
            sums += part
    return sums
