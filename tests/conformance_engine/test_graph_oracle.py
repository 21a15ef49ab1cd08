# SPDX-License-Identifier: Apache-2.0
"""RoPE, attention and activations of the suite's oracle, against complex numbers and loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformance.engine.graph_oracle import Look, Turn, far, gelu, mistaken_looks, mistaken_turns, rms_norm, silu

RANDOM = np.random.default_rng(9)


@pytest.mark.parametrize("neox", [True, False])
def test_a_turn_is_a_product_with_a_complex_number(neox: bool) -> None:
    heads, factors = RANDOM.standard_normal((6, 2, 10)), np.array([1.0, 2.0, 1e30, 4.0])
    found = Turn(8, 500.0, neox, 0.5, factors)(heads, np.arange(6) + 3)
    for m in range(6):
        for i in range(4):
            a, b = (i, i + 4) if neox else (2 * i, 2 * i + 1)
            angle = (m + 3) * 500.0 ** (-2 * i / 8) / factors[i] * 0.5
            for h in range(2):
                turned = complex(heads[m, h, a], heads[m, h, b]) * complex(math.cos(angle), math.sin(angle))
                assert found[m, h, a] == pytest.approx(turned.real, abs=1e-12)
                assert found[m, h, b] == pytest.approx(turned.imag, abs=1e-12)
    assert np.array_equal(found[..., 8:], heads[..., 8:])


def test_every_mistaken_turn_is_another_one() -> None:
    turn = Turn(8, 10000.0, True, factors=np.array([1.0, 2.0, 3.0, 4.0]))
    heads, at = RANDOM.standard_normal((9, 2, 8)), np.arange(9)
    for words, other in mistaken_turns(turn, (10000.0, 1e6)).items():
        assert far(other(heads, at), turn(heads, at), 2e-3) is not None, words


def test_attention_is_the_sum_over_the_positions_in_the_window() -> None:
    q, k, v = RANDOM.standard_normal((7, 4, 5)), RANDOM.standard_normal((7, 2, 5)), RANDOM.standard_normal((7, 2, 3))
    found = Look(0.4, window=3, softcap=2.0)(q, k, v).reshape(7, 4, 3)
    for m in range(7):
        for h in range(4):
            seen = range(max(0, m - 2), m + 1)
            scores = [2.0 * math.tanh(0.4 * float(q[m, h] @ k[j, h // 2]) / 2.0) for j in seen]
            total = sum(math.exp(s) for s in scores)
            want = sum(math.exp(s) / total * v[j, h // 2] for s, j in zip(scores, seen, strict=True))
            assert found[m, h] == pytest.approx(want)


def test_every_mistaken_way_to_attend_is_another_one() -> None:
    q, k, v = RANDOM.standard_normal((9, 2, 8)), RANDOM.standard_normal((9, 1, 8)), RANDOM.standard_normal((9, 1, 8))
    look = Look(1.0, window=4)
    for words, other in mistaken_looks(look).items():
        assert far(other(q, k, v), look(q, k, v), 2e-4) is not None, words


def test_norm_and_activations() -> None:
    assert rms_norm(np.array([[3.0, 4.0]]), np.array([1.0, 2.0]), 0.0)[0] == pytest.approx(
        [3 / math.sqrt(12.5), 8 / math.sqrt(12.5)]
    )
    assert float(silu(np.float64(2.0))) == pytest.approx(2 / (1 + math.exp(-2)))
    assert float(gelu(np.float64(1.0))) == pytest.approx(0.841191990)


def test_a_nan_is_far_from_everything() -> None:
    want = np.ones((3, 2))
    found = want.copy()
    found[1, 0] = np.nan
    wrong = far(found, want, 0.1)
    assert wrong is not None
    assert wrong[0] == 1
    assert far(want, want, 0.0) is None
