# SPDX-License-Identifier: Apache-2.0
"""C and NumPy give the same bits, on every CPU path, for every length and number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.errors import UsageError
from reference_engine.kernels.library import KernelLibrary
from reference_engine.rope import Yarn, rope_tables
from reference_engine.vector_ops import make_ops
from reference_engine.vector_ops_math import F32
from reference_engine.vector_ops_native import NativeOps
from reference_engine.vector_ops_numpy import NumpyOps
from tests.vector.attention_case import same_bits

SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 3e38, -3e38, 65519.0, 65520.0, -65536.0, 6e-8, 2.98e-8)
ONE = ("exp", "tanh", "sigmoid", "softplus", "silu", "gelu")
TWO = ("silu_mul", "gelu_mul", "add", "mul")
shared = settings(max_examples=25, deadline=None)


def values(n: int, seed: int) -> F32:
    """n values near zero, far from it, and special."""
    rng = np.random.default_rng(seed)
    x = np.where(rng.random(n) < 0.5, rng.normal(0, 2, n), rng.uniform(-120, 120, n)).astype(np.float32)
    x[rng.random(n) < 0.05] = SPECIAL[seed % len(SPECIAL)]
    return x


@shared
@given(n=st.integers(0, 200) | st.just(20011), seed=st.integers(0, 10**6), threads=st.integers(1, 3))
def test_element_wise_operations_give_the_bits_of_numpy(
    kernels: KernelLibrary, paths: list[str], n: int, seed: int, threads: int
) -> None:
    x, y, plain = values(n, seed), values(n, seed + 1), NumpyOps()
    for path in paths:
        assert kernels.use_path(path)
        ops = NativeOps(kernels, threads)
        for name in ONE:
            assert same_bits(getattr(ops, name)(x), getattr(plain, name)(x)), (path, name)
        for name in TWO:
            assert same_bits(getattr(ops, name)(x, y), getattr(plain, name)(x, y)), (path, name)
        assert same_bits(ops.gelu(x, half_table=True), plain.gelu(x, half_table=True))
        assert same_bits(ops.gelu_mul(x, y, half_table=True), plain.gelu_mul(x, y, half_table=True))
        assert same_bits(ops.scale(x, 0.1), plain.scale(x, 0.1))
        assert same_bits(ops.softcap(x, 30.0), plain.softcap(x, 30.0))
        assert ops.check_finite(x) == plain.check_finite(x) == bool(np.isfinite(x).all())


@shared
@given(
    shape=st.tuples(st.integers(1, 9), st.integers(1, 70) | st.just(3001)),
    seed=st.integers(0, 10**6),
    threads=st.integers(1, 3),
)
def test_rows_give_the_bits_of_numpy_alone_and_in_a_batch(
    kernels: KernelLibrary, paths: list[str], shape: tuple[int, int], seed: int, threads: int
) -> None:
    rows, n = shape
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0, 3, (2, rows, n)).astype(np.float32)
    weight, plain = rng.normal(1, 0.1, n).astype(np.float32), NumpyOps()
    for path in paths:
        assert kernels.use_path(path)
        ops = NativeOps(kernels, threads)
        for w in (weight, None):
            normed = ops.rms_norm(x, w, 1e-6)
            assert same_bits(normed, plain.rms_norm(x, w, 1e-6)), path
            assert same_bits(normed[-1:], ops.rms_norm(np.ascontiguousarray(x[-1:]), w, 1e-6))
        a, b = x.copy(), x.copy()
        assert same_bits(ops.add_rms_norm(a, y, weight, 1e-6), plain.add_rms_norm(b, y, weight, 1e-6))
        assert same_bits(a, b)
        assert same_bits(a, x + y)
        assert same_bits(ops.log_softmax(x), plain.log_softmax(x)), path
        assert same_bits(ops.add(x, weight), x + weight)


@shared
@given(
    dims=st.tuples(st.integers(1, 40).map(lambda i: 2 * i), st.integers(0, 9)),
    positions=st.lists(st.integers(0, 10**6), min_size=1, max_size=5),
    options=st.tuples(
        st.booleans(),
        st.sampled_from([1e4, 1e6, 5e5]),
        st.sampled_from([1.0, 0.125, 0.3]),
        st.booleans(),
        st.booleans(),
    ),
)
def test_rope_gives_the_bits_of_numpy(
    kernels: KernelLibrary,
    paths: list[str],
    dims: tuple[int, int],
    positions: list[int],
    options: tuple[bool, float, float, bool, bool],
) -> None:
    n_rot, passed = dims
    neox, base, scale, with_factors, with_yarn = options
    rng = np.random.default_rng(n_rot)
    factors = rng.uniform(1, 8, n_rot // 2).astype(np.float32) if with_factors else None
    yarn = Yarn(4096, 0.7, 1.1) if with_yarn else None
    cos, sin = rope_tables(positions, n_rot, base, scale, factors, yarn=yarn)
    x = rng.normal(size=(len(positions), 3, n_rot + passed)).astype(np.float32)
    right = x.copy()
    NumpyOps().rope(right, cos, sin, neox)
    assert same_bits(right[:, :, n_rot:], x[:, :, n_rot:])
    for path in paths:
        assert kernels.use_path(path)
        c, s = rope_tables(positions, n_rot, base, scale, factors, yarn=yarn, kernels=kernels)
        assert same_bits(c, cos)
        assert same_bits(s, sin)
        turned = x.copy()
        NativeOps(kernels, 2).rope(turned, c, s, neox)
        assert same_bits(turned, right), path


def test_out_may_be_the_argument_itself(kernels: KernelLibrary) -> None:
    for library in (kernels, None):
        ops = make_ops(library, 1)
        x, y = values(100, 4), values(100, 5)
        right = ops.silu_mul(x, y)
        assert ops.silu_mul(x, y, x) is x
        assert same_bits(x, right)


def test_arrays_that_do_not_fit_are_refused(kernels: KernelLibrary) -> None:
    ops = NativeOps(kernels, 1)
    with pytest.raises(UsageError, match="do not meet"):
        ops.add(np.zeros(5, np.float32), np.zeros(3, np.float32))
    with pytest.raises(UsageError, match="do not go into"):
        ops.exp(np.zeros(5, np.float32), np.zeros(4, np.float32))


def test_rms_norm_is_the_formula_in_float64() -> None:
    x = np.random.default_rng(0).normal(0, 50, (4, 577)).astype(np.float32)
    wide = x.astype(np.float64)
    right = wide / np.sqrt((wide * wide).mean(axis=1, keepdims=True) + 1e-5)
    assert np.abs(NumpyOps().rms_norm(x, None, 1e-5) - right).max() < 1e-6


def test_log_softmax_sums_to_one() -> None:
    x = np.random.default_rng(0).normal(0, 5, (3, 4001)).astype(np.float32)
    assert np.abs(np.exp(NumpyOps().log_softmax(x).astype(np.float64)).sum(axis=1) - 1).max() < 1e-5
