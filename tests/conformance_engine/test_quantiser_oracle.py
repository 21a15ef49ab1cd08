# SPDX-License-Identifier: Apache-2.0
"""The oracle of the quantiser is right by exact fractions, and its diagnosis tells faults apart."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from conformance.quantiser import oracle
from conformance.quantiser.diagnosis import SUSPECTS, difference
from conformance.quantiser.oracle import Answer, Rules

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
rules = st.builds(
    Rules,
    st.sampled_from([127, 7]),
    st.sampled_from([0.5, 0.9, 0.95, 1.0, 1.25]),
    st.booleans(),
    st.sampled_from([0.0, 1.0]),
)


def single(value: Fraction) -> float:
    """A fraction to float32 by hand: ties to even, subnormal numbers, infinity."""
    if value == 0:
        return 0.0
    size = abs(value)
    exponent = max(math.floor(math.log2(size)) if size < 2**1000 else 0, -126)
    while Fraction(2) ** exponent > size and exponent > -126:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= size:
        exponent += 1
    place = Fraction(2) ** (exponent - 23)
    rounded = round(size / place) * place
    found = math.inf if rounded >= 2**128 else float(rounded)
    return found if value > 0 else -found


def by_hand(row: list[float], r: Rules) -> tuple[list[int], float]:
    clip = struct.unpack("<f", struct.pack("<f", r.clip))[0]
    amax = max(abs(v) for v in row)
    clipped = single(Fraction(clip) * Fraction(amax))
    scale = math.inf if clipped == math.inf else single(Fraction(clipped) / r.most)
    if amax == 0:
        scale = r.empty_scale
    inverse = 0.0 if scale in (0, math.inf) else single(1 / Fraction(scale))
    found = []
    for v in row:
        if inverse == math.inf:
            whole = 0 if v == 0 else (2**31 - 1 if v > 0 else -(2**31))
        else:
            scaled = single(Fraction(v) * Fraction(inverse))
            if math.isinf(scaled):
                whole = 2**31 - 1 if scaled > 0 else -(2**31)
            else:
                whole = math.floor(abs(Fraction(scaled)) + Fraction(1, 2)) * (1 if scaled >= 0 else -1)
                whole = max(-(2**31), min(2**31 - 1, whole))
        if not r.clamp:
            whole = (whole + 128) % 256 - 128
        if r.clamp or r.most == 7:
            whole = max(-r.most, min(r.most, whole))
        found.append(whole)
    return found, scale


@settings(max_examples=300, deadline=None)
@given(st.lists(finite, min_size=1, max_size=6), rules)
@example([1e-45, -3e-44], Rules())
@example([1e-38, 5e-39], Rules(clamp=False))
@example([127.0, 0.5, -0.5, 63.5, 0.49999997], Rules())
@example([3.4028234663852886e38, 1.0], Rules())
@example([0.0, -0.0], Rules(empty_scale=1.0))
def test_integers_and_scales_are_those_of_exact_fractions(row: list[float], r: Rules) -> None:
    found = oracle.quantised(np.array([row], np.float32), r)
    q, scale = by_hand([float(np.float32(v)) for v in row], r)
    if math.isinf(scale):  # clip 1.25 of the largest numbers; not reached by finite weights of any model
        return
    assert found.q[0].tolist() == q
    assert float(found.scale[0]) == scale


def test_every_half_is_rounded_as_struct_rounds_it() -> None:
    bits = np.arange(0, 0x7C00, 7, dtype=np.uint16)
    values = bits.view(np.float16).astype(np.float64)
    middles = ((values[1:] + values[:-1]) / 2).astype(np.float32)
    points = np.concatenate(
        [values.astype(np.float32), middles, -middles, np.array([65504, 65519.996, -65503], np.float32)]
    )
    want = [struct.unpack("<e", struct.pack("<e", float(v)))[0] for v in points]
    assert oracle.halves(points).astype(np.float64).tolist() == want
    assert np.isposinf(oracle.halves(np.array([65520, 1e30], np.float32))).all()


def rows_for(r: Rules) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    random = np.random.default_rng(5)
    x = random.standard_normal((400, 33)).astype(np.float32)
    x[0, :5] = np.array([254, 0.5, -0.5, 2.5, -3.5], np.float32)  # half of it is 127: a scale of 1
    x[1] = 0
    x[2] *= np.float32(1e-39)
    return x


@pytest.mark.parametrize("words", list(SUSPECTS))
def test_each_known_fault_is_told_from_the_others(words: str) -> None:
    r = Rules(clip=0.5, clamp="held where" not in words)
    x = rows_for(r)
    with np.errstate(all="ignore"):
        q, scale = SUSPECTS[words](x, r)
    sentence = difference(x, q, scale, oracle.quantised(x, r), r)
    assert sentence is not None
    assert sentence.endswith(words)


def test_what_no_known_fault_explains_is_told_by_its_first_place() -> None:
    r = Rules()
    x = rows_for(r)
    want = oracle.quantised(x, r)
    q = want.q.copy()
    q[7, 3] += 1
    sentence = difference(x, q, want.scale, want, r)
    assert sentence is not None
    assert "1 of 400 rows" in sentence
    assert "first row 7" in sentence


def test_the_right_answer_is_no_difference() -> None:
    r = Rules()
    x = rows_for(r)
    want = oracle.quantised(x, r)
    assert difference(x, want.q, want.scale, want, r) is None
    assert difference(x, want.q[:5], want.scale[:5], Answer(want.q, want.scale, 0), r) is not None
