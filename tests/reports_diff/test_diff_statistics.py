# SPDX-License-Identifier: Apache-2.0
"""The interval of a ratio of medians: held against tables, against known truth, and against itself."""

from __future__ import annotations

import random
from statistics import NormalDist

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.diff.statistics import ratio_of_medians, student_t


@pytest.mark.parametrize(
    ("probability", "freedom", "quantile"),
    [
        (0.975, 1, 12.7062),
        (0.975, 2, 4.3027),
        (0.975, 10, 2.2281),
        (0.9995, 2, 31.5991),
        (0.995, 5, 4.0321),
        (0.95, 30, 1.6973),
        (0.9995, 120, 3.3735),
    ],
)
def test_quantiles_are_those_of_printed_tables(probability: float, freedom: float, quantile: float) -> None:
    assert student_t(probability, freedom) == pytest.approx(quantile, rel=4e-5)


def test_with_much_freedom_student_is_normal() -> None:
    assert student_t(0.975, 1e6) == pytest.approx(NormalDist().inv_cdf(0.975), rel=1e-5)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    choose = random.Random(4)
    held = 0
    for trial in range(400):
        before, after = [[scale * (1 + choose.gauss(0, 0.02)) for _ in range(12)] for scale in (1.0, 1.25)]
        ratio = ratio_of_medians(before, after, 0.95, trial)
        assert ratio is not None
        held += ratio.low <= 1.25 <= ratio.high
    assert 372 <= held <= 396  # 93 to 99 percent


def test_one_disturbed_sample_of_ten_does_not_spoil_the_interval() -> None:
    choose = random.Random(1)
    before, after = [[value * (1 + choose.gauss(0, 0.002)) for _ in range(10)] for value in (1.0, 0.9)]
    before[3] *= 0.4
    ratio = ratio_of_medians(before, after, 0.999, 1)
    assert ratio is not None
    assert ratio.high < 0.95


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=20),
    st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=20),
    st.floats(0.5, 0.99999),
)
def test_the_interval_holds_its_own_ratio_and_turns_with_the_sides(
    before: list[float], after: list[float], level: float
) -> None:
    one, again = (ratio_of_medians(before, after, level, 7) for _ in range(2))
    other = ratio_of_medians(after, before, level, 7)
    assert one is not None
    assert other is not None
    assert one == again
    assert one.low <= one.value * (1 + 1e-12)
    assert one.value <= one.high * (1 + 1e-12)
    assert one.value * other.value == pytest.approx(1)


def test_samples_without_spread_have_an_interval_without_width() -> None:
    ratio = ratio_of_medians([2.0] * 5, [1.0] * 5, 0.999, 1)
    assert ratio is not None
    assert ratio.low == ratio.high == pytest.approx(0.5)


@pytest.mark.parametrize("samples", [[], [1.0, 2.0], [1.0, 0.0, 2.0], [1.0, -1.0, 1.0]])
def test_too_few_or_impossible_samples_have_no_ratio(samples: list[float]) -> None:
    assert ratio_of_medians(samples, [1.0, 1.0, 1.0], 0.95, 1) is None
    assert ratio_of_medians([1.0, 1.0, 1.0], samples, 0.95, 1) is None
