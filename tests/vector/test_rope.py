# SPDX-License-Identifier: Apache-2.0
"""Rotary tables against ggml's formula in Python floats, each step rounded to f32 by the struct module."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.rope import Yarn, rope_tables
from reference_engine.vector_ops_numpy import NumpyOps


def single(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def angles(position: int, n_rot: int, base: float, scale: float, factors: list[float]) -> list[float]:
    """p, p s, p s s, ... in f32, each divided by its factor and scaled."""
    step = single(math.pow(base, single(-2 / n_rot)))
    theta, result = single(position), []
    for factor in factors:
        result.append(single(single(scale) * single(theta / factor)))
        theta = single(theta * step)
    return result


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 200_000),
    st.sampled_from([2, 32, 64, 80, 128, 512]),
    st.sampled_from([1e4, 5e5, 1e6]),
    st.sampled_from([1.0, 0.125, 0.25]),
    st.booleans(),
)
def test_tables_are_ggmls_formula(position: int, n_rot: int, base: float, scale: float, with_factors: bool) -> None:
    factors = np.linspace(1, 8, n_rot // 2).astype(np.float32) if with_factors else None
    cos, sin = rope_tables([position], n_rot, base, scale, factors)
    listed = [1.0] * (n_rot // 2) if factors is None else factors.tolist()
    for i, angle in enumerate(angles(position, n_rot, base, scale, listed)):
        assert abs(float(cos[0, i]) - math.cos(angle)) < 1e-7
        assert abs(float(sin[0, i]) - math.sin(angle)) < 1e-7


def test_yarn_keeps_fast_pairs_scales_slow_ones_and_raises_the_amplitude() -> None:
    n_rot, base, scale = 128, 1e4, 0.25
    yarn = Yarn(n_ctx_orig=4096)
    cos, sin = rope_tables([1000], n_rot, base, scale, yarn=yarn)
    low, high = (
        n_rot * math.log(yarn.n_ctx_orig / (turns * 2 * math.pi)) / (2 * math.log(base))
        for turns in (yarn.beta_fast, yarn.beta_slow)
    )
    low, high = max(0, math.floor(low)), min(n_rot - 1, math.ceil(high))
    assert 0 < low < high < n_rot // 2
    amplitude = 1 + 0.1 * math.log(1 / scale)
    for i, angle in enumerate(angles(1000, n_rot, base, 1.0, [1.0] * 64)):
        mix = 1 - min(1, max(0, (i - low) / max(0.001, high - low)))
        right = angle * scale * (1 - mix) + angle * mix
        assert abs(float(cos[0, i]) - amplitude * math.cos(right)) < 2e-4
        assert abs(float(sin[0, i]) - amplitude * math.sin(right)) < 2e-4


def test_an_infinite_factor_leaves_its_pair_unturned() -> None:
    # gemma4 turns a part of the head only, by factors of 1e30.
    cos, sin = rope_tables([12345], 4, 1e6, factors=np.array([1, 1e30], np.float32))
    assert cos[0, 1] == 1
    assert abs(float(sin[0, 1])) < 1e-20


def test_a_turn_keeps_lengths_and_dot_products_of_equal_distances() -> None:
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 1, 1, 64)).astype(np.float32)
    for neox in (False, True):
        products = []
        for at in (0, 100, 5000):
            cos, sin = rope_tables([at, at + 7], 64, 1e4)
            x = np.concatenate([q, k])
            NumpyOps().rope(x, cos, sin, neox)
            products.append(float(np.sum(x[0] * x[1])))
        assert max(products) - min(products) < 2e-3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0], 7, 1e4), "n_rot is 7"),
        (([0], 8, 0.0), "positive frequency base"),
        (([0], 8, 1e4, 1.0, np.ones(3, np.float32)), "4 pairs but factors of shape"),
    ],
)
def test_what_no_rope_can_be_is_refused(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rope_tables(*arguments)  # type: ignore[arg-type]
