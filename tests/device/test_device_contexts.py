# SPDX-License-Identifier: Apache-2.0
"""Many sizes of product, one after the other: contexts unused for longest give way to new ones."""

from __future__ import annotations

import numpy as np

from reference_engine.backends.device_worker import MOST_CONTEXTS
from tests.device.conftest import MakeDevice
from tests.device.rows import activations, bits, npu, tensor


def test_more_sizes_than_a_runtime_holds_contexts_for(device: MakeDevice) -> None:
    """Eight weights on three cores with 1 to 8 rows are 192 contexts; the runtime holds 150."""
    on_device = device("w8a8-per-channel,m_bucket=none")
    emulated = npu("w8a8-per-channel")
    shapes = [(96, 32 + 32 * i) for i in range(8)]
    pairs = [(on_device.linear(tensor(f"w{k}", n, k)), emulated.linear(tensor(f"w{k}", n, k))) for n, k in shapes]
    assert 8 * 3 * len(shapes) > 150 > MOST_CONTEXTS
    for M in (*range(1, 9), 1):
        for (_, k), (found, wanted) in zip(shapes, pairs, strict=True):
            x = activations(M, k)
            assert np.array_equal(bits(found(x)), bits(wanted(x))), (M, k)
