# SPDX-License-Identifier: Apache-2.0
"""The roundings: half away from zero, fused multiply-add, int8 products, int16 accumulators."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reference_engine.backends.integer_product import int8_product, to_int16
from reference_engine.backends.rounding import fused_multiply_add, round_half_away, to_int32_saturating
from tests.linear.scalar_oracle import f32_of_fraction, round_away

moderate = st.floats(min_value=-(2.0**50), max_value=2.0**50, width=32)


@settings(max_examples=500, deadline=None)
@given(moderate)
@example(0.49999997)
@example(-0.5)
@example(2.5)
@example(8388607.5)
def test_halves_round_away_from_zero(value: float) -> None:
    assert round_half_away(np.array([value], np.float32))[0] == round_away(value)


@settings(max_examples=1500, deadline=None)
@given(moderate, moderate, moderate)
@example(1.0000001, 1.0000001, -1.0)
@example(1e-30, 1e-15, 1e-45)
@example(16777217.0, 1.0, 2.0**-30)
def test_a_fused_multiply_add_rounds_once(a: float, b: float, c: float) -> None:
    a, b, c = (float(np.float32(v)) for v in (a, b, c))
    one = [np.array([v], np.float32) for v in (a, b, c)]
    wanted = f32_of_fraction(Fraction(a) * Fraction(b) + Fraction(c))
    assert float(fused_multiply_add(*one)[0]) == wanted


def test_rounding_twice_is_not_rounding_once() -> None:
    rng = np.random.default_rng(0)
    a, b, c = rng.standard_normal((3, 100000)).astype(np.float32)
    assert 0.1 < np.mean(fused_multiply_add(a, b, c) != a * b + c) < 0.5


def test_beyond_int32_the_ends_hold_and_nan_is_zero() -> None:
    values = np.array([np.nan, np.inf, -np.inf, 1e20, -1e20, 127.0], np.float64)
    assert to_int32_saturating(values).tolist() == [0, 2**31 - 1, -(2**31), 2**31 - 1, -(2**31), 127]


int8s = st.integers(-128, 127)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.integers(1, 4), st.integers(1, 5), st.integers(1, 60))
def test_int8_products_are_exact(data: st.DataObject, m: int, n: int, k: int) -> None:
    a = data.draw(hnp.arrays(np.int8, (m, k), elements=int8s))
    b = data.draw(hnp.arrays(np.int8, (n, k), elements=int8s))
    wanted = [[sum(x * y for x, y in zip(r, s, strict=True)) for s in b.tolist()] for r in a.tolist()]
    assert int8_product(a, b).tolist() == wanted


def test_int8_products_beyond_the_digits_of_float32_stay_exact() -> None:
    a, b = np.full((1, 15360), 127, np.int8), np.full((2, 15360), 127, np.int8)
    b[1, 7] = 126
    assert int8_product(a, b).tolist() == [[127 * 127 * 15360, 127 * 127 * 15360 - 127]]


def test_int8_sums_wrap_modulo_two_to_the_32() -> None:
    a = np.full((1, 200000), 127, np.int8)
    assert int8_product(a, a)[0, 0] == (127 * 127 * 200000 + 2**31) % 2**32 - 2**31


def test_int16_accumulators() -> None:
    sums = np.array([32767, 32768, -32768, -32769, 98304], np.int32)
    assert to_int16(sums, "saturate").tolist() == [32767, 32767, -32768, -32768, 32767]
    assert to_int16(sums, "wrap").tolist() == [32767, -32768, -32768, 32767, -32768]


def test_a_scale_made_of_the_largest_magnitude_never_rounds_beyond_127() -> None:
    """Over all mantissas of one binade, since scaling by two changes nothing (2^23 values, float32 as in the forks)."""
    for start in range(0x3F800000, 0x40000000, 1 << 20):
        amax = np.arange(start, start + (1 << 20), dtype=np.uint32).view(np.float32)
        assert float((amax * (np.float32(1) / (amax / np.float32(127)))).max()) < 127.5
