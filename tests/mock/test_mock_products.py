# SPDX-License-Identifier: Apache-2.0
"""Every type code, in every layout, over a grid of shapes, against numpy."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

import mock_reference as ref
import numpy as np
import pytest
from mock_client import NATIVE, NORM, TP_NORM, Matmul, load

SHAPES = [(1, 32, 64), (2, 64, 128), (5, 96, 64), (33, 160, 192), (300, 32, 64), (7, 2080, 64), (64, 512, 320)]


@pytest.fixture(scope="module")
def library() -> Iterator[c.CDLL]:
    """Persona with all thirteen types, tiles of RK3588."""
    yield load(persona="any")


def compute(library: c.CDLL, kind: ref.Kind, a: ref.Array, b: ref.Array, b_layout: int, ac_layout: int) -> ref.Array:
    M, N = a.shape[0], b.shape[1]
    with Matmul(library, kind.code, M, a.shape[1], N, b_layout=b_layout, ac_layout=ac_layout) as matmul:
        assert [matmul.io.A.type, matmul.io.B.type, matmul.io.C.type] == [
            ref.TENSOR_CODE[name] for name in (kind.a, kind.b, kind.c)
        ]
        matmul.write("A", ref.pack_a(a, kind.a, ac_layout == NATIVE))
        matmul.write("B", ref.pack_b(b, kind.b, b_layout))
        matmul.bytes("C")[:] = 0xA5
        assert matmul.bind() == [0, 0, 0]
        assert matmul.run() == 0
        return ref.unpack_c(matmul.bytes("C").copy(), kind.c, M, N, ac_layout == NATIVE)


@pytest.mark.parametrize("ac_layout", [NORM, NATIVE])
@pytest.mark.parametrize("b_layout", [NORM, NATIVE, TP_NORM])
@pytest.mark.parametrize("code", sorted(ref.KINDS))
def test_every_type_is_exact_in_every_layout(library: c.CDLL, code: int, b_layout: int, ac_layout: int) -> None:
    kind = ref.KINDS[code]
    for seed, (M, K, N) in enumerate(SHAPES):
        a, b = ref.data(kind, M, K, N, seed, small=kind.a == "f16")
        got = compute(library, kind, a, b, b_layout, ac_layout)
        want = ref.expected(kind, ref.product(a, b))
        assert np.array_equal(got, want), (M, K, N)
