# SPDX-License-Identifier: Apache-2.0
"""The oracles against Python integers and fractions, element by element; the comparers against results made wrong."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from conformance import oracles
from conformance.oracles_compare import CANARY, difference, difference_between, difference_within

Array = NDArray[Any]
FEW = settings(max_examples=40, deadline=None)


def by_hand(a: Array, b: Array) -> list[list[int]]:
    return [
        [sum(int(a[m, k]) * int(b[k, n]) for k in range(a.shape[1])) for n in range(b.shape[1])]
        for m in range(a.shape[0])
    ]


@FEW
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 9), st.integers(1, 4), st.sampled_from([8, 16, 27]))
def test_the_exact_product_is_that_of_integers(seed: int, M: int, K: int, N: int, bits: int) -> None:
    random = np.random.default_rng(seed)
    high = 1 << (bits - 1)
    kind = np.int8 if bits == 8 else np.int64
    a, b = (random.integers(-high, high, shape).astype(kind) for shape in ((M, K), (K, N)))
    got = oracles.exact_product(a, b)
    assert got.dtype == np.int64
    assert got.tolist() == by_hand(a, b)


def test_a_product_beyond_doubles_is_exact_still() -> None:
    a, b = np.array([[2**27 + 1, 1]]), np.array([[2**27 + 1], [0]])
    assert oracles.exact_product(a, b).tolist() == [[(2**27 + 1) ** 2]]
    assert oracles.exact_product(np.full((1, 2), 2**27), np.array([[2**25], [1]])).tolist() == [[2**52 + 2**27]]
    assert oracles.exact_product(np.zeros((2, 0), np.int8), np.zeros((0, 3), np.int8)).tolist() == [[0] * 3] * 2


@FEW
@given(st.integers(-(2**40), 2**40), st.sampled_from([8, 16, 32]))
def test_wrapping_and_saturating_are_those_of_integers(value: int, bits: int) -> None:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    one = np.array([value])
    assert oracles.saturated(one, bits)[0] == max(low, min(high, value))
    wrapped = int(oracles.wrapped(one, bits)[0])
    assert low <= wrapped <= high
    assert (wrapped - value) % 2**bits == 0


@pytest.mark.parametrize(("value", "bits", "want"), [(128, 8, -128), (-129, 8, 127), (127, 8, 127), (-128, 8, -128)])
def test_wrapping_at_the_rim(value: int, bits: int, want: int) -> None:
    assert oracles.wrapped(np.array([value]), bits).tolist() == [want]


def held(value: int) -> int:
    return sorted((-128, value, 127))[1]


@FEW
@given(st.integers(-(2**20), 2**20), st.integers(0, 14))
def test_requantised_holds_the_nearest_integers(total: int, shift: int) -> None:
    low, high = oracles.requantised(np.array([[total]]), 2.0**-shift)
    assert low.dtype == high.dtype == np.int64
    exact = Fraction(total, 2**shift)
    nearest = [n for n in range(int(exact) - 2, int(exact) + 3) if abs(n - exact) <= Fraction(1, 2)]
    assert int(low[0, 0]) == held(min(nearest))
    assert int(high[0, 0]) == held(max(nearest))


@FEW
@given(st.integers(0, 2**31), st.integers(1, 64))
def test_sums_in_fp32_lie_within_the_bound_and_the_bound_is_tight_to_its_formula(seed: int, K: int) -> None:
    random = np.random.default_rng(seed)
    a = random.standard_normal((2, K)).astype(np.float16)
    b = random.standard_normal((K, 2)).astype(np.float16)
    bound = oracles.reduction_bound(a, b)
    half = oracles.reduction_bound(a, b, half_output=True)
    for m in range(2):
        for n in range(2):
            total, exact, size = np.float32(0), Fraction(0), Fraction(0)
            for k in range(K):
                total = np.float32(total + np.float32(a[m, k]) * np.float32(b[k, n]))
                term = Fraction(float(a[m, k])) * Fraction(float(b[k, n]))
                exact, size = exact + term, size + abs(term)
            formula = float(size * Fraction(K, 2**24 - K))
            assert abs(Fraction(float(total)) - exact) <= Fraction(float(bound[m, n])) * Fraction(1001, 1000)
            assert bound[m, n] == pytest.approx(formula, rel=1e-9)
            rounded = formula + (abs(float(exact)) + formula) * 2.0**-11 + 2.0**-25
            assert half[m, n] == pytest.approx(rounded, rel=1e-9)


def test_groups_have_their_own_scale() -> None:
    a = np.arange(8, dtype=np.int8).reshape(2, 4)
    b = np.arange(8, dtype=np.int8).reshape(4, 2) - 3
    scale = np.array([[0.5, 2.0], [4.0, 0.25]])
    want = [
        [sum(float(a[m, k]) * float(b[k, n]) * scale[k // 2, n] for k in range(4)) for n in range(2)] for m in range(2)
    ]
    assert oracles.grouped_product(a, b, scale).tolist() == want
    # One group and three columns, three groups and one column: the first side of the scales counts groups.
    wide = oracles.grouped_product(a, np.hstack([b, b[:, :1]]), np.array([[2.0, 3.0, 5.0]]))
    assert wide.tolist() == [[2 * row[0], 3 * row[1], 5 * row[0]] for row in by_hand(a, b)]
    tall = oracles.grouped_product(
        np.ones((1, 6), np.int8), np.ones((6, 1), np.int8), np.array([[1.0], [10.0], [100.0]])
    )
    assert tall.tolist() == [[222.0]]


def test_the_even_element_lies_in_the_low_nibble() -> None:
    packed = oracles.nibbles(np.array([1, -1, 7, -8], np.int8))
    assert packed.tolist() == [0xF1, 0x87]
    assert packed.dtype == np.uint8


def test_native_tiles_hold_each_element_at_its_place() -> None:
    a = np.arange(6 * 8).reshape(6, 8)
    tiled = oracles.native_a(a, 4)
    assert tiled.shape == (2, 6, 4)
    assert all(tiled[k // 4, m, k % 4] == a[m, k] for m in range(6) for k in range(8))
    b = np.arange(8 * 6).reshape(8, 6)
    tiled = oracles.native_b(b, 3, 4)
    assert tiled.shape == (2, 2, 3, 4)
    assert all(tiled[n // 3, k // 4, n % 3, k % 4] == b[k, n] for k in range(8) for n in range(6))
    assert oracles.from_native_c(oracles.native_a(a, 2)).tolist() == a.tolist()
    assert all(x.flags.c_contiguous for x in (tiled, oracles.native_a(a, 4), oracles.from_native_c(tiled[0])))


def test_distributions_are_what_their_names_say() -> None:
    random = np.random.default_rng(5)
    drawn = {
        (name, side): draw(random, (40, 60) if side == 0 else (60, 40), side)
        for name, draw in oracles.DISTRIBUTIONS.items()
        for side in (0, 1)
    }
    for (_, side), values in drawn.items():
        assert values.dtype == np.int8
        assert values.shape == ((40, 60) if side == 0 else (60, 40))
        assert values.flags.c_contiguous
    assert {int(drawn["random", 0].min()), int(drawn["random", 0].max())} == {-128, 127}
    assert set(np.unique(drawn["extremes", 0]).tolist()) == {-128, 127}
    assert np.all(drawn["extremes", 0] == drawn["extremes", 0][:, :1])
    assert np.all(drawn["extremes", 1] == drawn["extremes", 1][:1])
    hot = drawn["single hot", 0]
    assert (hot != 0).sum(axis=1).tolist() == [1] * 40
    assert set(np.unique(hot).tolist()) == {0, 127}
    assert len(set(np.argmax(hot, axis=1).tolist())) > 10
    narrow = oracles.single_hot_int8(random, (200, 2), 0)
    assert (narrow != 0).any(axis=0).all()
    assert len(np.unique(drawn["single hot", 1])) > 200
    turns = drawn["alternating", 0].astype(int)
    assert np.all(turns[:, 1:] == -turns[:, :-1])
    assert set(np.unique(turns).tolist()) == {-127, 127}
    assert set(turns[:, 0].tolist()) == {-127, 127}
    down = drawn["alternating", 1].astype(int)
    assert np.all(down[1:] == -down[:-1])


WANT = np.array([[10, 20, 30], [40, 50, 60], [70, 80, 90]], np.int32)
CANARY32 = int(np.full(4, CANARY, np.uint8).view(np.int32)[0])


def changed(**at: int) -> Array:
    got: Array = WANT.copy()
    for place, value in at.items():
        got[int(place[1]), int(place[2])] = value
    return got


def test_equal_results_make_no_sentence() -> None:
    assert difference(WANT, WANT.copy()) is None
    assert difference_within(WANT, WANT.astype(np.float32) + 0.5, np.full(WANT.shape, 0.5)) is None
    assert difference_between(WANT - 1, WANT, WANT - 1) is None
    assert difference_between(WANT - 1, WANT, WANT) is None


def test_a_sentence_tells_how_many_where_and_what() -> None:
    found = difference(WANT, changed(p12=7, p21=8))
    assert found == "2 of 9 elements are wrong, first at row 1, column 2: got 7, expected 60"
    assert difference(WANT, WANT[:2]) == "C has shape (2, 3), expected (3, 3)"
    assert difference_within(WANT, WANT[:2], WANT) == "C has shape (2, 3), expected (3, 3)"


@pytest.mark.parametrize(
    ("got", "words"),
    [
        (np.full_like(WANT, CANARY32), "C was not written: it still holds what stood in it"),
        (np.zeros_like(WANT), "C is all zero"),
        (WANT[[1, 0, 2]], "rows 0 and 1 have changed places"),
        (WANT[[0, 2, 1]], "rows 1 and 2 have changed places"),
        (
            changed(p20=CANARY32, p21=CANARY32, p22=CANARY32),
            "rows from 2 on were not computed: a slice of the batch is missing",
        ),
        (changed(p22=91), "one element is off by one"),
        (changed(p22=89), "one element is off by one"),
        (changed(p01=-(2**31)), "one element is the most negative value"),
        (WANT * 2, "doubled"),
    ],
)
def test_a_known_fault_is_named(got: Array, words: str) -> None:
    found = difference(WANT, got, {"tripled": WANT * 3, "doubled": WANT * 2, "flat": WANT.ravel()})
    assert found is not None
    assert found.endswith("; " + words)


@pytest.mark.parametrize(
    "got",
    [
        changed(p00=12),
        changed(p00=11, p01=21),
        changed(p10=CANARY32, p11=CANARY32, p12=CANARY32),
        changed(p00=20, p01=10),
        changed(p00=-(2**31), p01=5),
        WANT[[1, 2, 0]],
    ],
)
def test_what_is_no_known_fault_is_not_named(got: Array) -> None:
    found = difference(WANT, got, {"doubled": WANT * 2})
    assert found is not None
    assert ";" not in found


def test_a_missing_slice_is_named_by_rows_whatever_the_width() -> None:
    want = np.arange(10, 30, dtype=np.int32).reshape(4, 5)
    got = want.copy()
    got[2:] = CANARY32
    assert str(difference(want, got)).endswith("; rows from 2 on were not computed: a slice of the batch is missing")


def test_a_float_that_is_wrong_and_no_nan_is_not_called_one() -> None:
    wide = WANT.astype(np.float32)
    wide[0, 0] += 7
    assert ";" not in str(difference_within(WANT.astype(np.float64), wide, np.ones(WANT.shape)))


def test_infinity_beside_infinity_is_wrong_without_a_warning() -> None:
    want = np.full(WANT.shape, np.inf)
    assert str(difference_within(want, want.astype(np.float32), np.ones(WANT.shape))).startswith("9 of 9")
    near, far = np.full(WANT.shape, np.finfo(np.float64).max), np.full(WANT.shape, -np.finfo(np.float64).max)
    assert str(difference_within(near, far, np.ones(WANT.shape))).startswith("9 of 9")


def test_nan_is_wrong_and_named_and_a_float_beyond_the_bound_is_wrong() -> None:
    wide = WANT.astype(np.float32)
    wide[1, 1] = np.nan
    found = difference_within(WANT.astype(np.float64), wide, np.full(WANT.shape, 1e9))
    assert found is not None
    assert found.startswith("1 of 9 elements are wrong, first at row 1, column 1")
    assert found.endswith("; there are NaN")
    over = WANT.astype(np.float64) + np.array([0, 0, 0.51])
    assert str(difference_within(WANT, over, np.full(WANT.shape, 0.5))).startswith("3 of 9")
    assert str(difference_within(WANT, WANT - np.array([0, 0, 0.51]), np.full(WANT.shape, 0.5))).startswith("3 of 9")
    assert str(difference_within(WANT, np.full(WANT.shape, np.inf), np.full(WANT.shape, 1.0))).startswith("9 of 9")


def test_outside_the_allowed_range_is_wrong_on_both_sides() -> None:
    assert str(difference_between(WANT - 1, WANT, WANT + 1)).startswith("9 of 9")
    assert str(difference_between(WANT - 1, WANT, WANT - 2)).startswith("9 of 9")
