# SPDX-License-Identifier: Apache-2.0
"""float32 products with one order of sums, in numpy.

Order: sixteen lanes; lane l adds the products of k = l, l + 16, ... in rising k from +0, every product and every sum
rounded to float32; a short tail counts as +0 products; then the lanes fold 16 to 8 to 4 to 2 to 1, lane i with lane
i + half. It depends on K alone, so a row has the same bits in any batch, on any number of threads, on any machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

LANES = 16
_BLOCK_ELEMENTS = 1 << 17  # products held at a time: 512 KiB


def pad_to_lanes(x: F32) -> F32:
    """x [rows, K] with K padded by +0 to whole lanes, as [rows, K / 16, 16]."""
    rows, k = x.shape
    if k % LANES:
        x = np.pad(x, ((0, 0), (0, -k % LANES)))
    return x.reshape(rows, x.shape[1] // LANES, LANES)


def fold_lanes(lanes: F32) -> F32:
    """[..., 16] -> [...]."""
    half = LANES // 2
    while half:
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
        half //= 2
    return lanes[..., 0]


def product(x: F32, w: F32, out: F32) -> None:
    """out [M, N] = x [M, K] times w [N, K] transposed."""
    a, b = pad_to_lanes(x), pad_to_lanes(w)
    step = max(1, _BLOCK_ELEMENTS // max(1, b.shape[1] * LANES))
    for n in range(0, b.shape[0], step):
        block = b[n : n + step]
        for m in range(a.shape[0]):
            out[m, n : n + step] = fold_lanes(_lane_sums(a[m] * block))


def _lane_sums(products: F32) -> F32:
    """Sums over axis 1 of [N, K / 16, 16], in rising k.

    numpy adds along an axis that is not the innermost one element after the other (only the innermost one is summed in
    pairs); it starts from the first product, so + 0.0 at the end makes a -0 of nothing but -0 the +0 of the definition.
    """
    sums: F32 = np.add.reduce(products, axis=1) + np.float32(0.0)
    return sums
