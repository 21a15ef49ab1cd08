# SPDX-License-Identifier: Apache-2.0
"""Classes of a first difference, from the log-probabilities alone."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.server.difference import (
    NEAR_TIE,
    NOT_CLASSED,
    RULED_OUT,
    UNCLEAR,
    Difference,
    Path,
    first_difference,
    noise_between,
    path_of,
)
from conformance.server.replies import Row


def of(*gaps: float, noise: float | None = None) -> str:
    paths = tuple(Path(f"path {i}", gap) for i, gap in enumerate(gaps))
    return Difference(3, 7, 8, paths, noise).kind


@pytest.mark.parametrize(
    ("gaps", "noise", "kind"),
    [
        ((0.48, 0.05), 0.43, NEAR_TIE),  # measured on gemma3-270m Q4_K_M, llama.cpp b11434
        ((0.48, -0.2), 0.68, NEAR_TIE),  # the other path takes speculation's token
        ((4.04, 4.08, 4.08), 0.08, RULED_OUT),  # measured with --spec-synth-len, which accepts unseen
        ((0.5, 0.5), 0.1, UNCLEAR),
        ((0.5, 0.5), 0.3, NEAR_TIE),
        ((2.9,), None, UNCLEAR),
        ((3.0,), None, RULED_OUT),
        ((9.0, 0.05), 0.0, NEAR_TIE),
        ((), None, NOT_CLASSED),
        ((1.5, 1.4), 50.0, UNCLEAR),  # a service whose rows are noise does not make a tie of everything
    ],
)
def test_the_class_follows_the_smallest_gap_and_the_noise(
    gaps: tuple[float, ...], noise: float | None, kind: str
) -> None:
    assert of(*gaps, noise=noise) == kind


ORDER = (NEAR_TIE, UNCLEAR, RULED_OUT)
GAPS = st.lists(st.floats(-20, 20), min_size=1, max_size=3)


@given(gaps=GAPS, more=st.floats(0, 20), noise=st.none() | st.floats(0, 5))
@settings(max_examples=200, deadline=None)
def test_larger_gaps_never_make_a_difference_more_innocent(gaps: list[float], more: float, noise: float | None) -> None:
    assert ORDER.index(of(*(gap + more for gap in gaps), noise=noise)) >= ORDER.index(of(*gaps, noise=noise))


@given(gaps=GAPS, extra=st.floats(-20, 20), noise=st.none() | st.floats(0, 5))
@settings(max_examples=200, deadline=None)
def test_another_path_never_makes_a_difference_guiltier(gaps: list[float], extra: float, noise: float | None) -> None:
    assert ORDER.index(of(*gaps, extra, noise=noise)) <= ORDER.index(of(*gaps, noise=noise))


def test_a_gap_is_between_the_two_tokens_of_one_row() -> None:
    row = Row(5, {5: -0.1, 6: -2.1, 7: -4.0})
    both = path_of("p", row, 5, 6)
    assert both is not None
    assert math.isclose(both.gap, 2.0)
    beyond = path_of("p", row, 5, 99)
    assert beyond is not None
    assert beyond.at_least
    assert math.isclose(beyond.gap, 3.9)
    reverse = path_of("p", row, 99, 5)
    assert reverse is not None
    assert reverse.gap < 0
    assert path_of("p", row, 98, 99) is None
    assert path_of("p", None, 5, 6) is None
    assert path_of("p", row, None, 6) is None


def test_noise_is_the_largest_change_among_the_top_tokens_of_both() -> None:
    one, other = Row(1, {1: -0.5, 2: -1.0, 3: -9.0}), Row(1, {1: -0.6, 2: -0.7})
    assert noise_between(one, other) == pytest.approx(0.3)
    assert noise_between(one, None) is None
    assert noise_between(one, Row(1, {9: -1.0})) is None


@given(one=st.lists(st.integers(0, 3)), other=st.lists(st.integers(0, 3)))
@settings(max_examples=200, deadline=None)
def test_the_first_difference_is_the_first(one: list[int], other: list[int]) -> None:
    index = first_difference(one, other)
    if index is None:
        assert one == other
    else:
        assert one[:index] == other[:index]
        assert one[index : index + 1] != other[index : index + 1]


def test_the_sentence_names_position_tokens_gaps_and_class() -> None:
    said = Difference(6, 11, 12, (Path("path A", 0.48), Path("path B", 0.05, at_least=True)), 0.43).sentence()
    for part in ("token 6 is 11", "12 with", "0.48 nats in the path A", "more than 0.05 nats", "0.43", NEAR_TIE):
        assert part in said
