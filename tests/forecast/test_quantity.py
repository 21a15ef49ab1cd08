# SPDX-License-Identifier: Apache-2.0
"""Numbers with intervals: the interval holds every outcome, and what is unknown stays unknown."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.forecast.quantity import Quantity, exact, larger, sampled, span, total, unknown

numbers = st.floats(min_value=1e-6, max_value=1e6)


@st.composite
def quantities(draw: Callable[..., float]) -> Quantity:
    low, value, high = sorted(draw(numbers) for _ in range(3))
    return Quantity(value, low, high, ("row",))


def inside(low: float, value: float, high: float) -> bool:
    return low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)


@settings(max_examples=200, deadline=None)
@given(quantities(), quantities(), st.floats(0, 1), st.floats(0, 1))
def test_every_pair_of_values_within_two_intervals_ends_within_that_of_the_result(
    left: Quantity, right: Quantity, at: float, other: float
) -> None:
    assert left.low is not None and left.high is not None and right.low is not None and right.high is not None
    a, b = left.low + at * (left.high - left.low), right.low + other * (right.high - right.low)
    for result, value in ((left + right, a + b), (left * right, a * b), (left / right, a / b)):
        assert result.low is not None and result.high is not None and result.value is not None
        assert inside(result.low, value, result.high)
        assert inside(result.low, result.value, result.high)
    most = larger(left, right)
    assert most.low is not None and most.high is not None
    assert inside(most.low, max(a, b), most.high)


def test_an_unknown_part_makes_sum_product_and_ratio_unknown_and_is_named() -> None:
    known = Quantity(2.0, 1.0, 3.0, ("a",))
    lost = unknown("npu_stream, contexts 3")
    for result in (known + lost, lost + known, known * lost, known / lost, lost / known, larger(known, lost)):
        assert not result.known
        assert result.missing == ("npu_stream, contexts 3",)
        assert result.value is result.low is result.high is None


def test_a_part_that_only_adds_leaves_a_bound_that_names_it() -> None:
    bound = Quantity(2.0, 1.0, 3.0).plus_part(unknown("attention"))
    assert (bound.value, bound.omitted, bound.bound) == (2.0, ("attention",), True)
    assert bound.inverse().omitted == ("attention",)
    assert (bound + exact(1.0)).omitted == ("attention",)
    assert bound.as_json()["state"] == "bound"


def test_one_over_an_interval_that_reaches_zero_is_unknown() -> None:
    assert not Quantity(1.0, 0.0, 2.0, ("rate",)).inverse().known
    assert not (exact(1.0) / Quantity(1.0, -1.0, 2.0)).known


def test_ends_of_a_ratio_change_places() -> None:
    ratio = exact(6.0) / Quantity(2.0, 1.0, 3.0)
    assert (ratio.low, ratio.value, ratio.high) == (2.0, 3.0, 6.0)


def test_few_samples_give_their_ends_and_many_leave_a_tenth_out_at_each_end() -> None:
    assert (sampled(2.0, [1.0, 2.0, 9.0], "r").low, sampled(2.0, [1.0, 2.0, 9.0], "r").high) == (1.0, 9.0)
    many = sampled(50.0, [float(i) for i in range(101)], "r")
    assert (many.low, many.high) == (10.0, 90.0)
    assert sampled(5.0, [], "r") == Quantity(5.0, 5.0, 5.0, ("r",))
    assert sampled(5.0, [6.0, 7.0], "r").low == 5.0


def test_several_readings_of_one_number_span_all_of_them() -> None:
    told = span([Quantity(1.0, 0.5, 1.5, ("a",)), unknown("b"), Quantity(3.0, 2.0, 4.0, ("c",))])
    assert (told.value, told.low, told.high, told.sources) == (2.0, 0.5, 4.0, ("a", "c"))
    assert not span([unknown("b")]).known


def test_a_sum_of_nothing_is_certain_zero() -> None:
    assert total([]) == exact(0.0)


@pytest.mark.parametrize("quantity", [exact(1.0), unknown("x"), Quantity(1.0, 1.0, 1.0).without("y")])
def test_the_document_of_a_number_says_its_state(quantity: Quantity) -> None:
    state = quantity.as_json()["state"]
    assert state == ("unknown" if not quantity.known else "bound" if quantity.omitted else "estimate")
