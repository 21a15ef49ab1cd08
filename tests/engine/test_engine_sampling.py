# SPDX-License-Identifier: Apache-2.0
"""Sampling: what is left after each cut, how often a token is drawn, and that a seed means the same everywhere."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.errors import UsageError
from reference_engine.sampling import SamplingOptions, candidates, draw, greedy, make_sampler

NO_CUT = SamplingOptions(1.0, top_k=0, top_p=1.0, min_p=0.0)
logits_of_tokens = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(-30, 30, width=32)), min_size=1, max_size=60
)


def probabilities(logits: list[float]) -> list[float]:
    weights = [math.exp(value - max(logits)) for value in logits]
    return [weight / math.fsum(weights) for weight in weights]


@given(logits_of_tokens)
@settings(max_examples=50, deadline=None)
def test_greedy_is_the_first_of_the_largest(logits: list[float]) -> None:
    assert greedy(np.array(logits, np.float32)) == logits.index(max(logits))


@given(logits_of_tokens)
@settings(max_examples=50, deadline=None)
def test_without_cuts_all_tokens_are_left_the_likeliest_first(logits: list[float]) -> None:
    found = candidates(np.array(logits, np.float32), NO_CUT).tolist()
    assert found == sorted(range(len(logits)), key=lambda token: (-logits[token], token))


@given(logits_of_tokens, st.integers(1, 70))
@settings(max_examples=60, deadline=None)
def test_top_k_leaves_the_k_likeliest_and_the_lower_id_of_equals(logits: list[float], k: int) -> None:
    found = candidates(np.array(logits, np.float32), SamplingOptions(1.0, k, 1.0, 0.0)).tolist()
    assert found == sorted(range(len(logits)), key=lambda token: (-logits[token], token))[:k]


@given(logits_of_tokens, st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_top_p_leaves_the_shortest_list_that_reaches_p(logits: list[float], p: float) -> None:
    found = candidates(np.array(logits, np.float32), SamplingOptions(1.0, 0, p, 0.0)).tolist()
    share = probabilities(logits)
    assert math.fsum(share[token] for token in found) >= p - 1e-5
    assert math.fsum(share[token] for token in found[:-1]) <= p + 1e-5
    assert found


@given(logits_of_tokens, st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_min_p_leaves_what_is_likely_enough_beside_the_likeliest(logits: list[float], p: float) -> None:
    found = set(candidates(np.array(logits, np.float32), SamplingOptions(1.0, 0, 1.0, p)).tolist())
    for token, value in enumerate(logits):
        ratio = math.exp(value - max(logits))
        if not math.isclose(ratio, p, rel_tol=1e-5, abs_tol=1e-30):
            assert (token in found) == (ratio > p)
    assert logits.index(max(logits)) in found


def test_tokens_are_drawn_as_often_as_their_probability_says() -> None:
    logits = np.log(np.array([0.5, 0.25, 0.15, 0.1], np.float32))
    sample = make_sampler(NO_CUT)
    drawn = Counter(sample(logits) for _ in range(4000))
    for token, share in enumerate((0.5, 0.25, 0.15, 0.1)):
        assert abs(drawn[token] / 4000 - share) < 5 * math.sqrt(share * (1 - share) / 4000)


def test_a_low_temperature_sharpens_and_a_high_one_flattens() -> None:
    logits = np.array([2.0, 1.0, 0.0], np.float32)
    first = {}
    for temperature in (0.25, 1.0, 4.0):
        sample = make_sampler(SamplingOptions(temperature, 0, 1.0, 0.0))
        first[temperature] = sum(sample(logits) == 0 for _ in range(1000))
    assert first[0.25] > first[1.0] + 100
    assert first[1.0] > first[4.0] + 100


def test_a_seed_gives_these_tokens_on_every_machine() -> None:
    """The first raw number is written out; the rest is worked out again in Python's integers and floats."""
    logits = np.array([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5], np.float32)
    sample = make_sampler(SamplingOptions(0.9, 0, 1.0, 0.0, seed=7))
    found = [sample(logits) for _ in range(24)]
    raw = np.random.PCG64(7)
    assert int(raw.random_raw()) == 11530976094092348043
    expected = []
    stream = np.random.PCG64(7)
    weights = [math.exp((value - 3.5) / 0.9) for value in reversed(logits.tolist())]
    for _ in found:
        point = (int(stream.random_raw()) >> 11) / 2**53 * math.fsum(weights)
        rank = next(i for i in range(8) if math.fsum(weights[: i + 1]) > point)
        expected.append(7 - rank)
    assert found == expected
    assert len(set(found)) > 2


def test_the_same_seed_draws_the_same_and_another_one_does_not() -> None:
    logits = np.linspace(0, 3, 50, dtype=np.float32)
    runs = [
        [make(logits) for _ in range(30)] for make in (make_sampler(SamplingOptions(1.0, seed=s)) for s in (1, 1, 2))
    ]
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("weights", "raw", "expected"),
    [
        ([1, 1], 0, 0),
        ([1, 1], (1 << 63) - 1, 0),
        ([1, 1], 1 << 63, 1),  # a border belongs to the token above it
        ([1, 1], (1 << 64) - 1, 1),
        ([0, 1], 0, 1),  # a weight of 0 is never drawn
        ([1, 0, 2, 1], 1 << 62, 2),
    ],
)
def test_a_draw_falls_where_the_shares_say(weights: list[float], raw: int, expected: int) -> None:
    assert draw(np.array(weights, np.float32), raw) == expected


@given(st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20), st.integers(0, 2**64 - 1))
@settings(max_examples=60, deadline=None)
def test_a_draw_is_always_one_of_the_weights(weights: list[float], raw: int) -> None:
    at = draw(np.array([1.0, *weights], np.float32), raw)
    assert 0 <= at <= len(weights)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_k": -1}, "top-k"),
        ({"top_p": 1.1}, "top-p"),
        ({"min_p": -1.0}, "min-p"),
        ({"seed": -1}, "seed"),
        ({"seed": 1 << 64}, "seed"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, float], what: str) -> None:
    with pytest.raises(UsageError, match=what):
        SamplingOptions(**options)  # type: ignore[arg-type]
