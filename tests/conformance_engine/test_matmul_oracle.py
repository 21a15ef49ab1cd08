# SPDX-License-Identifier: Apache-2.0
"""The matmul oracle of the suite agrees with the scalar one of the kit's own tests; its bound holds and is tight."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.engine.matmul_oracle import WeightOracle, collected, float_bound, integer_product, nearest_single
from reference_engine.backends.pipeline import Pipeline
from reference_engine.backends.presets import PRESETS, parse_pipeline
from tests.linear.scalar_oracle import Oracle, Rules, f32_of_fraction

PLAIN = sorted(name for name, pipeline in PRESETS.items() if pipeline.route == "all")


def scalar_rules(p: Pipeline) -> Rules:
    return Rules(
        bits=p.bits,
        scale=p.weight_scale,
        transform=p.hadamard,
        k_limit=p.k_limit,
        cores=p.cores,
        clamp=p.clamp,
        fma=p.fma,
        k_align=p.k_align,
        n_align=p.n_align,
        overflow=p.int16_overflow,
        a_clip=p.a_clip,
        b_clip=p.b_clip,
        one_activation_scale=p.activation_scale == "tensor",
    )


@pytest.mark.parametrize("preset", PLAIN)
def test_results_are_those_of_the_scalar_oracle(preset: str) -> None:
    pipeline = parse_pipeline(f"{preset},k_limit=32")
    random = np.random.default_rng(3)
    w = (random.standard_normal((70, 96)) * np.exp(random.standard_normal((70, 1)))).astype(np.float32)
    x = (random.standard_normal((3, 96)) * np.exp(random.standard_normal((3, 1)))).astype(np.float32)
    ours = WeightOracle("w", w, pipeline)
    signs = [] if ours.signs is None else ours.signs.tolist()
    want = Oracle(w.astype(np.float64).tolist(), signs, scalar_rules(pipeline))(x.astype(np.float64).tolist())
    rows = ours.transformed(x)
    prepared = [ours.activation(rows, piece) for piece in ours.pieces]
    sums = [ours.sums(q, piece) for (q, _), piece in zip(prepared, ours.pieces, strict=True)]
    for m in range(3):
        for n in range(0, 70, 7):
            terms = [
                (float(np.float32(total[m, n - p.n0])), float(ours.factor(scale[m : m + 1], p.scale)[0, n - p.n0]))
                for p, (_, scale), total in zip(ours.pieces, prepared, sums, strict=True)
                if p.n0 <= n < p.n1
            ]
            assert collected([t for t, _ in terms], [f for _, f in terms], pipeline.fma) == want[m][n]


@settings(max_examples=100, deadline=None)
@given(st.fractions(min_value=-(2**40), max_value=2**40, max_denominator=2**60))
def test_a_fraction_is_rounded_as_the_other_oracle_rounds_it(value: Fraction) -> None:
    assert nearest_single(value) == f32_of_fraction(value)


def test_integer_products_do_not_pass_through_floats() -> None:
    a, b = np.full((1, 15360), 127, np.int8), np.full((2, 15360), 127, np.int8)
    b[1, 7] = 126
    assert integer_product(a, b).tolist() == [[127 * 127 * 15360, 127 * 127 * 15360 - 127]]


@pytest.mark.parametrize("preset", ["w8a8-per-channel", "w8a8-segment", "w8a8-rank-one", "w8a8-hadamard", "w16a16"])
def test_a_quantised_product_lies_within_its_bound_and_another_weight_does_not(preset: str) -> None:
    random = np.random.default_rng(4)
    w = random.standard_normal((64, 96)).astype(np.float32)
    x = random.standard_normal((5, 96)).astype(np.float32)
    pipeline = PRESETS[preset]
    ours = WeightOracle("w", w, pipeline)
    exact, bound = float_bound(ours, w, x)
    rows, y = ours.transformed(x), np.zeros((5, 64))
    for piece in ours.pieces:
        q, scale = ours.activation(rows, piece)
        y[:, piece.n0 : piece.n1] += ours.sums(q, piece) * ours.factor(scale, piece.scale)
    assert (np.abs(y - exact) <= bound).all()
    other = np.roll(exact, 1, axis=1)
    assert (np.abs(other - exact) > bound).mean() > 0.8
