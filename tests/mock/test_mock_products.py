# SPDX-License-Identifier: Apache-2.0
"""Every type code, in every layout, over a grid of shapes, against numpy."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock import mock_reference as ref
from tests.mock.mock_client import NATIVE, NORM, TP_NORM, Matmul, load

SHAPES = [(1, 32, 64), (2, 64, 128), (5, 96, 64), (33, 160, 192), (300, 32, 64), (7, 2080, 64), (64, 512, 320)]


@pytest.fixture(scope="module")
def library() -> Iterator[c.CDLL]:
    """Persona with all thirteen types, tiles of RK3588."""
    yield load(persona="any")


def compute(library: c.CDLL, kind: ref.Kind, a: ref.Array, b: ref.Array, *, b_layout: int, ac_layout: int) -> ref.Array:
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
        got = compute(library, kind, a, b, b_layout=b_layout, ac_layout=ac_layout)
        want = ref.expected(kind, ref.product(a, b))
        assert np.array_equal(got, want), (M, K, N)


def test_fp16_over_its_range_stays_within_the_error_of_float_sums(library: c.CDLL) -> None:
    for code in (1, 4, 5, 6, 7, 8, 12):
        kind = ref.KINDS[code]
        a, b = ref.data(kind, 17, 2048, 64, code)
        got = compute(library, kind, a, b, b_layout=NATIVE, ac_layout=NORM)
        exact = ref.product(a, b)
        # Sum of K float products: K roundings at most, each of the running magnitude; then one rounding of C.
        magnitude = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        step = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}[kind.c]
        value = (got.astype(np.uint32) << np.uint32(16)).view(np.float32) if kind.c == "bf16" else got
        wrong = np.abs(value.astype(np.float64) - exact) > magnitude * 2048 * 2.0**-24 + np.abs(exact) * step + 1e-7
        assert not wrong.any(), code


def test_int32_sums_wrap_at_their_width_and_never_saturate(library: c.CDLL) -> None:
    K = 131104
    a, b = np.full((1, K), -128, np.int8), np.full((K, 32), -128, np.int8)
    got = compute(library, ref.KINDS[2], a, b, b_layout=NORM, ac_layout=NORM)
    assert np.all(got == np.int64(K * 16384 - 2**32).astype(np.int32))


@pytest.mark.parametrize("K", [8192, 8224, 15360, 20480])
@pytest.mark.parametrize("code", [1, 2, 10])
def test_native_b_above_the_segment_limit_is_tiled_segment_by_segment(library: c.CDLL, code: int, K: int) -> None:
    kind = ref.KINDS[code]
    a, b = ref.data(kind, 3, K, 64, K, small=kind.a == "f16")
    got = compute(library, kind, a, b, b_layout=NATIVE, ac_layout=NATIVE)
    assert np.array_equal(got, ref.expected(kind, ref.product(a, b)))


def test_int4_output_saturates_or_wraps_as_chosen() -> None:
    kind = ref.KINDS[10]
    a, b = np.full((2, 2048), -8, np.int8), np.full((2048, 64), -8, np.int8)
    b[:, 1] = 7
    total = ref.product(a, b)
    saturating, wrapping = load(), load(int16="wrap")
    assert np.array_equal(compute(saturating, kind, a, b, b_layout=NATIVE, ac_layout=NATIVE), ref.expected(kind, total))
    assert np.array_equal(compute(wrapping, kind, a, b, b_layout=NATIVE, ac_layout=NATIVE), total.astype(np.int16))


def test_every_fp16_value_survives_the_way_through_the_mock(library: c.CDLL) -> None:
    """A x identity: each fp16, subnormals and infinities included, comes back with its own bits."""
    values = np.arange(65536, dtype=np.uint16).view(np.float16)
    finite = values[np.isfinite(values)]
    a = np.resize(finite, (-(-finite.size // 32), 32)).astype(np.float16)
    b = np.zeros((32, 32), np.float16)
    np.fill_diagonal(b, 1)
    got = compute(library, ref.KINDS[4], a, b, b_layout=NORM, ac_layout=NORM)
    assert np.array_equal(got.view(np.uint16) & 0x7FFF, a.view(np.uint16) & 0x7FFF)
    assert np.array_equal(got.astype(np.float64), a.astype(np.float64))


@given(bits=st.lists(st.integers(0, 2**32 - 1), min_size=64, max_size=64))
@settings(max_examples=200, deadline=None)
def test_rounding_to_fp16_and_bf16_is_to_nearest_even(library: c.CDLL, bits: list[int]) -> None:
    """int8 x int8 sums (types 9 and 15) times a scale give arbitrary floats; numpy rounds the same product."""
    scale = np.abs(np.array(bits[:1], np.uint32).view(np.float32))
    if not np.isfinite(scale).all():
        scale = np.ones(1, np.float32)
    kind = ref.KINDS[15]
    a = np.array([[bit % 256 - 128 for bit in bits[:32]]], np.int8)
    b = np.array([bit // 256 % 16 - 8 for bit in bits], np.int8).reshape(1, 64).repeat(32, axis=0)
    with Matmul(library, 15, 1, 32, 64) as matmul:
        matmul.write("A", ref.pack_a(a, "i8", False))
        matmul.write("B", ref.pack_b(b, "i4", NORM))
        assert matmul.scales("A", scale) == 0
        assert matmul.bind() == [0, 0, 0]
        assert matmul.run() == 0
        got = ref.unpack_c(matmul.bytes("C").copy(), "f16", 1, 64, False)
    with np.errstate(over="ignore"):
        want = (ref.product(a, b).astype(np.float32) * scale).astype(np.float16)
    assert np.array_equal(got.view(np.uint16) & 0x7FFF, want.view(np.uint16) & 0x7FFF)
    assert kind.c == "f16"
