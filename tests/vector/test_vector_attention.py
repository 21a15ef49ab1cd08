# SPDX-License-Identifier: Apache-2.0
"""Attention: the textbook's values, and bits that no batch, thread, CPU path or ring changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.errors import UsageError
from reference_engine.kernels.library import KernelLibrary
from reference_engine.vector_ops import make_ops
from tests.vector.attention_case import Case, same_bits

CASES = {
    "full": Case(),
    "flash": Case(flash=True),
    "window": Case(window=9),
    "window wider than a block, flash": Case(window=70, flash=True),
    "soft cap": Case(softcap=3.0),
    "soft cap and window, flash": Case(softcap=3.0, window=33, flash=True),
    "one head of keys": Case(heads=4, kv_heads=1, k_dim=16, v_dim=256),
    "as many heads of keys as of queries": Case(heads=3, kv_heads=3, k_dim=72, v_dim=8),
    "no scale": Case(scale=1.0, k_dim=16),
}
# What f16 loses in keys and values shows up as about 1e-7, 8 and 4 bits as 1e-4 and 1e-2.
LOSS = {"f32": 1e-12, "f16": 1e-6, "q8_0": 3e-4, "q4_0": 6e-2}


@pytest.mark.parametrize("name", CASES)
def test_attention_is_the_formula_in_float64(kernels: KernelLibrary, name: str) -> None:
    case = CASES[name]
    assert case.error(case.run(kernels, 2)) < 1e-12


@pytest.mark.parametrize("kind", LOSS)
@pytest.mark.parametrize("rotate", [False, True])
def test_cells_of_fewer_bits_lose_what_those_bits_carry(kernels: KernelLibrary, kind: str, rotate: bool) -> None:
    case = Case(type_k=kind, type_v=kind, rotate=rotate, tokens=40)
    assert case.error(case.run(kernels)) < LOSS[kind]
    if kind != "f32":
        assert case.error(case.run(kernels)) > LOSS[kind] / 1e3


cases = st.builds(
    Case,
    heads=st.sampled_from([2, 4, 6]),
    kv_heads=st.sampled_from([1, 2]),
    k_dim=st.sampled_from([32, 64, 96, 128]),
    v_dim=st.sampled_from([32, 64, 160]),
    tokens=st.integers(1, 150),
    window=st.sampled_from([0, 1, 5, 64, 77]),
    softcap=st.sampled_from([0.0, 20.0]),
    flash=st.booleans(),
    type_k=st.sampled_from(list(LOSS)),
    type_v=st.sampled_from(list(LOSS)),
    rotate=st.booleans(),
    seed=st.integers(0, 99),
)
odd_heads = st.builds(
    Case,
    k_dim=st.sampled_from([8, 16, 24, 72, 80]),
    v_dim=st.sampled_from([8, 40, 72]),
    tokens=st.integers(1, 80),
    flash=st.booleans(),
    type_k=st.sampled_from(["f32", "f16"]),
    type_v=st.sampled_from(["f32", "f16"]),
)


@settings(max_examples=30, deadline=None)
@given(case=cases | odd_heads, cut=st.integers(1, 149), threads=st.integers(1, 3))
def test_c_gives_the_bits_of_numpy_in_any_chunks(
    kernels: KernelLibrary, paths: list[str], case: Case, cut: int, threads: int
) -> None:
    chunks = (min(cut, case.tokens), case.tokens - min(cut, case.tokens))
    right = case.run()
    for path in paths:
        assert kernels.use_path(path)
        assert same_bits(case.run(kernels, threads, [n for n in chunks if n]), right), path


@pytest.mark.parametrize("name", CASES)
def test_a_row_alone_has_the_bits_of_that_row_in_a_batch(kernels: KernelLibrary, name: str) -> None:
    case = CASES[name]
    together = case.run(kernels, 2)
    for library in (kernels, None):
        alone = case.run(library, 1, [1] * case.tokens) if library else case.run(None, 1, [1, 2, 61, 26])
        assert same_bits(alone, together)


@pytest.mark.parametrize("flash", [False, True])
@pytest.mark.parametrize("kind", LOSS)
def test_a_ring_gives_the_bits_of_cells_that_are_never_reused(kernels: KernelLibrary, kind: str, flash: bool) -> None:
    case = Case(window=20, tokens=300, flash=flash, type_k=kind, type_v=kind)
    chunks = [16, 1, 1, 7, 16, 16, 16] + [16] * 14 + [3]
    for library in (kernels, None):
        ring, straight = case.cache(library), case.cache(library, ring=False)
        assert ring.layer(0).capacity < straight.layer(0).capacity
        assert same_bits(case.run(library, 1, chunks, ring), case.run(library, 1, chunks, straight))


def test_a_batch_larger_than_the_ring_makes_it_grow_and_changes_no_bit(kernels: KernelLibrary) -> None:
    case = Case(window=20, tokens=300)
    for library in (kernels, None):
        ring = case.cache(library)
        before = ring.layer(0).capacity
        answer = case.run(library, 1, [50, 130, 1, 119], ring)
        assert ring.layer(0).capacity > before
        assert same_bits(answer, case.run(library, 1, (), case.cache(library, ring=False)))


def test_faults_are_seen_by_the_oracle_and_by_the_comparison(kernels: KernelLibrary) -> None:
    case = Case(window=9, tokens=40)
    right = case.run(kernels)
    assert case.error(right) < 1e-12
    window_off_by_one = replace(case, window=10).run(kernels)
    assert case.error(window_off_by_one) > 1e-4
    assert not same_bits(window_off_by_one, right)
    # Query heads dealt to the heads of keys in turn, instead of in groups.
    q, k, v = case.rows()
    cache = case.cache(kernels)
    at = np.arange(case.tokens, dtype=np.int32)
    cache.layer(0).append(k, v, at)
    order = [0, 2, 4, 1, 3, 5]
    dealt = make_ops(kernels, 1).attention(
        np.ascontiguousarray(q[:, order]), cache.layer(0), at, scale=case.scale, window=case.window
    )
    back = np.ascontiguousarray(dealt.reshape(case.tokens, 6, -1)[:, np.argsort(order)]).reshape(case.tokens, -1)
    assert case.error(back) > 1e-2


def test_a_stale_cell_in_view_is_seen(kernels: KernelLibrary) -> None:
    case = Case(tokens=40)
    cache = case.cache(kernels)
    right = case.run(kernels, 1, [39, 1], case.cache(kernels))
    case.run(kernels, 1, [39], cache)
    cache.layer(0).v_codes[0, 20, 3] += 0.25
    stale = case.run(kernels, 1, [1], cache)
    assert not same_bits(stale, right[-1:])


def test_what_is_out_of_view_may_be_anything(kernels: KernelLibrary) -> None:
    for flash in (False, True):
        case = Case(tokens=80, window=30, flash=flash)
        for library in (kernels, None):
            cache = case.cache(library, ring=False)
            right = case.run(library)
            case.run(library, 1, [70], cache)
            layer = cache.layer(0)
            layer.v_codes[:, :40] = np.nan
            layer.k_codes[:, :2] = np.nan
            layer.v_codes[:, 80:] = np.inf
            layer.k_codes[:, 5:] = np.nan
            assert same_bits(case.run(library, 2, [1, 9], cache), right[70:])


def test_queries_that_do_not_fit_the_cells_are_refused(kernels: KernelLibrary) -> None:
    case = Case(tokens=4)
    cache = case.cache(kernels)
    case.run(kernels, 1, [4], cache)
    ops, at = make_ops(kernels, 1), np.arange(4, dtype=np.int32)
    with pytest.raises(UsageError, match="do not fit"):
        ops.attention(np.zeros((4, 5, 64), np.float32), cache.layer(0), at, scale=1.0)
    with pytest.raises(UsageError, match="int32 positions"):
        ops.attention(np.zeros((4, 6, 64), np.float32), cache.layer(0), at.astype(np.int64), scale=1.0)
