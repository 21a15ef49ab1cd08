# SPDX-License-Identifier: Apache-2.0
"""A repeated prompt that is faster than distinct ones is flagged; chance is not."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.cache_cheat import compare_speeds


def around(middle: float, spread: float, count: int = 9, seed: int = 0) -> list[float]:
    return [float(v) for v in middle * (1 + spread * np.random.default_rng(seed).standard_normal(count))]


@pytest.mark.parametrize("ratio", [0.001, 0.5, 0.8])
def test_a_repeated_prompt_that_is_clearly_faster_is_flagged(ratio: float) -> None:
    found = compare_speeds(around(1.0, 0.02), around(ratio, 0.02, seed=1))
    assert found.cheats is True
    assert found.faster == pytest.approx(1 - ratio, abs=0.05)
    assert "a cache answers a repeated prompt" in found.sentence()


@pytest.mark.parametrize("ratio", [0.97, 1.0, 1.05, 3.0])
def test_a_repeated_prompt_that_is_as_fast_or_slower_is_not(ratio: float) -> None:
    found = compare_speeds(around(1.0, 0.01), around(ratio, 0.01, seed=1))
    assert found.cheats is False
    assert "cache answers" not in found.sentence()


def test_wide_scatter_decides_nothing() -> None:
    found = compare_speeds([1.0, 2.0, 3.0, 4.0, 5.0], [0.5, 1.5, 2.0, 3.0, 4.5])
    assert found.cheats is None
    assert "scatter too much" in found.sentence()


def test_one_slow_spell_flags_nothing() -> None:
    distinct = [1.0, 1.01, 0.99, 1.0, 30.0, 1.0, 1.02]
    assert compare_speeds(distinct, [1.0, 0.99, 1.01, 1.0, 1.0, 1.0, 25.0]).cheats is False


def test_noise_alone_is_not_flagged_in_two_thousand_draws() -> None:
    flagged = sum(
        compare_speeds(around(1.0, 0.05, 7, seed), around(1.0, 0.05, 7, seed + 5000)).cheats is True
        for seed in range(2000)
    )
    assert flagged <= 2


@pytest.mark.parametrize("count", [5, 7, 14, 28])
def test_a_machine_with_two_speeds_is_hardly_ever_flagged_and_not_twice(count: int) -> None:
    flags = []
    for seed in range(2000):
        random = np.random.default_rng(seed)
        one, other = (list(random.choice([1.0, 1.3], count) * (1 + 0.01 * random.random(count))) for _ in range(2))
        flags.append(compare_speeds(one, other).cheats is True)
    assert sum(flags) <= 0.03 * len(flags)
    assert sum(first and second for first, second in zip(flags[::2], flags[1::2], strict=True)) <= 3


@pytest.mark.parametrize("values", [[1.0] * 4, [1.0, 1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0, float("nan")]])
def test_too_few_or_impossible_timings_are_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="timings"):
        compare_speeds(values, [1.0] * 5)
