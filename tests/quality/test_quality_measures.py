# SPDX-License-Identifier: Apache-2.0
"""Distances and intervals, held against sums by hand: math.fsum over Python floats, roots, and numerical integrals."""

from __future__ import annotations

import math
import statistics
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reference_engine.quality.estimates import _STUDENT, exponential, mean, share
from reference_engine.quality.evaluate import cut
from reference_engine.quality.kv import repeated
from reference_engine.quality.layers import LayerErrors
from reference_engine.quality.matmuls import Digest, MatmulLog, agreement
from reference_engine.quality.measures import compare_rows

LOGITS = st.lists(st.floats(-40, 40, width=32), min_size=2, max_size=12)
RUNS = settings(max_examples=100, deadline=None)


def probabilities(logits: list[float]) -> list[float]:
    top = max(logits)
    weights = [math.exp(value - top) for value in logits]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


@given(st.data(), LOGITS)
@RUNS
def test_kl_is_the_sum_by_hand(data: st.DataObject, reference: list[float]) -> None:
    other = data.draw(st.lists(st.floats(-40, 40, width=32), min_size=len(reference), max_size=len(reference)))
    target = data.draw(st.integers(0, len(reference) - 1))
    found = compare_rows(np.array([reference], np.float32), np.array([other], np.float32), [target])
    p, q = probabilities(reference), probabilities(other)
    expected = math.fsum(a * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True) if a > 0)
    assert found.kl[0] == pytest.approx(expected, abs=1e-9)
    assert found.kl[0] >= 0
    assert found.surprise[0] == pytest.approx(-math.log(q[target]), abs=1e-9)
    assert found.reference_surprise[0] == pytest.approx(-math.log(p[target]), abs=1e-9)
    first = [values.index(max(values)) for values in (reference, other)]
    assert found.same_top[0] == (first[0] == first[1])
    ordered = sorted(reference)
    assert found.gap[0] == pytest.approx(ordered[-1] - ordered[-2])


def test_the_last_token_has_no_surprise_but_a_distance() -> None:
    rows = np.zeros((2, 5), np.float32)
    rows[1, 2] = 3.0
    found = compare_rows(rows, rows[::-1].copy(), [4, None])
    assert [math.isnan(value) for value in found.surprise] == [False, True]
    assert found.surprise[0] == pytest.approx(math.log(4 + math.exp(3)))
    assert (found.kl > 0).all()


def test_a_distance_needs_rows_of_one_shape() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        compare_rows(np.zeros((2, 5), np.float32), np.zeros((2, 6), np.float32), [0, 0])
    with pytest.raises(ValueError, match="1 targets"):
        compare_rows(np.zeros((2, 5), np.float32), np.zeros((2, 5), np.float32), [0])


def test_blocks_of_a_large_vocabulary_give_what_rows_give() -> None:
    rng = np.random.default_rng(1)
    reference, other = (rng.standard_normal((9, 300_000)).astype(np.float32) for _ in range(2))
    whole = compare_rows(reference, other, list(range(9)))
    for row in range(9):
        alone = compare_rows(reference[row : row + 1], other[row : row + 1], [row])
        assert alone.kl[0] == whole.kl[row]
        assert alone.surprise[0] == whole.surprise[row]


@given(st.lists(st.floats(0, 10), min_size=1, max_size=400), st.integers(2, 40))
@RUNS
def test_mean_and_interval_by_hand(values: list[float], block: int) -> None:
    found = mean(np.array(values), block)
    assert found.value == pytest.approx(statistics.fmean(values), abs=1e-9)
    count = len(values) // block
    if count < 4:
        assert found.low is None
        return
    bounds = [round(i * len(values) / count) for i in range(count + 1)]
    means = [statistics.fmean(values[bounds[i] : bounds[i + 1]]) for i in range(count)]
    quantile = student(count - 1) if count <= 31 else 1.959964
    half = quantile * statistics.stdev(means) / math.sqrt(count)
    assert found.low == pytest.approx(found.value - half, abs=2e-3 * half + 1e-9)
    assert found.high == pytest.approx(found.value + half, abs=2e-3 * half + 1e-9)
    carried = exponential(np.array(values), block)
    assert carried.low == pytest.approx(math.exp(found.value - half), rel=1e-2)
    assert carried.value == pytest.approx(math.prod(math.exp(value / len(values)) for value in values), rel=1e-6)


def student(df: int) -> float:
    """The 97.5 % quantile by bisection over Simpson's rule on the density."""
    scale = math.gamma((df + 1) / 2) / math.gamma(df / 2) / math.sqrt(df * math.pi)

    def below(t: float, steps: int = 400) -> float:
        # x = tan(a): the density falls off slowly for few degrees of freedom, and the range must be finite.
        edge = math.atan(t)
        values = [
            scale * math.pow(1 + math.tan(a) ** 2 / df, -(df + 1) / 2) / math.cos(a) ** 2
            for a in (edge * i / steps for i in range(steps + 1))
        ]
        return 0.5 + edge / steps / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))

    low, high = 1.9, 13.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) < 0.975 else (low, middle)
    return low


@pytest.mark.parametrize("df", [1, 2, 3, 5, 10, 17, 30])
def test_the_table_of_student_is_right(df: int) -> None:
    assert _STUDENT[df - 1] == pytest.approx(student(df), abs=2e-3)


def test_intervals_cover_a_known_mean_about_as_often_as_they_say() -> None:
    """Draws that hang together over ten tokens, as a text's do: bars of single tokens would cover far too seldom."""
    rng = np.random.default_rng(7)
    kernel = np.ones(10) / 10
    hits = narrow = 0
    for _ in range(400):
        values = np.convolve(rng.standard_normal(1033), kernel, "valid")
        found, naive = mean(values), mean(values, 1)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0 <= found.high
        narrow += naive.low is not None and naive.high is not None and naive.low <= 0 <= naive.high
    assert 0.85 < hits / 400 <= 1
    assert narrow / 400 < 0.7


@given(st.integers(1, 3000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@RUNS
def test_ends_of_a_share_are_where_the_normal_test_turns(pair: tuple[int, int]) -> None:
    hits, total = pair
    found = share(hits, total)
    assert found.value == hits / total
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
    for end in (found.low, found.high):
        if 0 < end < 1:
            assert abs(found.value - end) == pytest.approx(1.959964 * math.sqrt(end * (1 - end) / total), abs=1e-6)


def test_a_share_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        share(0, 0)


def test_a_perplexity_beyond_all_floats_stays_a_number() -> None:
    found = exponential(np.full(200, 5000.0))
    assert math.isfinite(found.value)


@given(st.lists(st.integers(0, 99), min_size=1, max_size=300), st.integers(4, 64), st.booleans(), st.integers(0, 2))
@RUNS
def test_chunks_are_the_text_in_order(tokens: list[int], n_ctx: int, begins: bool, skip: int) -> None:
    bos = 100 if begins else None
    text = [100, *tokens] if begins else tokens
    try:
        found = cut(text, n_ctx, bos, skip=skip)
    except ValueError:
        assert len(text) <= skip + 2
        return
    joined: list[int] = []
    for chunk in found.chunks:
        assert skip + 1 < len(chunk) <= n_ctx
        if begins:
            assert chunk[0] == 100
        joined += chunk[1:] if begins else chunk
    assert joined == tokens[: len(joined)]
    assert len(tokens) - len(joined) <= skip + 1
    assert cut(text, n_ctx, bos, 1, skip).chunks == found.chunks[:1]


def test_a_context_that_leaves_nothing_to_judge_is_refused() -> None:
    with pytest.raises(ValueError, match="leave nothing to judge"):
        cut([1, 2, 3], 4, None, skip=3)
    with pytest.raises(ValueError, match="too few"):
        cut([1], 8, None)


def test_a_short_text_is_repeated_and_that_is_told() -> None:
    assert repeated([1, 2, 3], 8) == ([1, 2, 3, 1, 2, 3, 1, 2], 2)
    assert repeated([1, 2, 3], 3) == ([1, 2, 3], 0)


def test_errors_by_layer_by_hand() -> None:
    reference, other = LayerErrors(), LayerErrors()
    other.share_reference(reference)
    for step in (1.0, 2.0):
        reference.keep("l_out", 4, np.array([[3.0 * step, 4.0]], np.float32))
        reference.keep("attn_norm", 4, np.zeros((1, 2), np.float32))
        other.compare("l_out", 4, np.array([[3.0 * step, 5.0]], np.float32))
        other.compare("l_out", 5, np.zeros((1, 2), np.float32))
    assert other.as_json() == [{"layer": 4, "nmse": pytest.approx(2 / (25 + 52))}]


def log(*calls: tuple[str, str, str]) -> MatmulLog:
    return MatmulLog([Digest(name, 1, activation, sums) for name, activation, sums in calls])


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (log(("q", "a", "x"), ("k", "b", "y")), {"compared": 2, "equal": True}),
        (log(("q", "a", "x"), ("k", "b", "z")), {"products_differ": 1, "first": "k", "equal": False}),
        (log(("q", "a", "w"), ("k", "c", "y")), {"first": "q", "first_activation": "k", "activations_differ": 1}),
        (log(("q", "a", "x")), {"compared": 0, "reason": "the two do not send the same matmuls to the NPU"}),
        (log(), {"compared": 0, "equal": False, "reason": "one of both makes no integer products"}),
    ],
)
def test_matmuls_are_told_apart_by_cause(other: MatmulLog, expected: dict[str, Any]) -> None:
    found = agreement(log(("q", "a", "x"), ("k", "b", "y")), other)
    for name, value in expected.items():
        assert getattr(found, name) == value, name


def as_rows(values: list[list[float]]) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def test_equal_logits_have_no_distance_and_ties_go_to_the_first() -> None:
    rows = as_rows([[1.0, 1.0, 0.0], [0.0, 2.0, 2.0]])
    found = compare_rows(rows, rows, [0, 1])
    assert not found.kl.any()
    assert found.same_top.all()
    assert not found.gap.any()
