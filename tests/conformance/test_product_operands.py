# SPDX-License-Identifier: Apache-2.0
"""The operands of the products tell a right accumulator from a narrow one."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.oracles import exact_product
from conformance.runtime.products import MS, large_and_odd


@pytest.mark.parametrize("K", [8160, 8192, 8224])
@pytest.mark.parametrize("seed", range(5))
def test_an_accumulator_of_24_bits_is_seen_at_the_cliff_of_k(K: int, seed: int) -> None:
    a, b = large_and_odd(np.random.default_rng(seed), 3, K, 32)
    exact = exact_product(a, b)
    assert np.any(exact.astype(np.float32).astype(np.int64) != exact)


def test_there_is_an_odd_m_above_one_tile_of_rows() -> None:
    assert any(M > 64 and M % 2 for M in MS)
