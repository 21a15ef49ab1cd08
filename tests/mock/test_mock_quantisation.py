# SPDX-License-Identifier: Apache-2.0
"""Scales per layer, per channel and per group, and the B converter."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.mock import mock_reference as ref
from tests.mock.mock_client import NATIVE, NORM, PER_CHANNEL, PER_GROUP, Info, Matmul, load


@pytest.fixture(scope="module")
def library() -> Iterator[c.CDLL]:
    yield load(persona="any")


def run(matmul: Matmul, code: int, a: ref.Array, b: ref.Array, native: bool = False) -> ref.Array:
    kind = ref.KINDS[code]
    matmul.write("A", ref.pack_a(a, kind.a, native))
    matmul.write("B", ref.pack_b(b, kind.b, NATIVE if native else NORM))
    assert matmul.bind() == [0, 0, 0]
    assert matmul.run() == 0
    return ref.unpack_c(matmul.bytes("C").copy(), kind.c, a.shape[0], b.shape[1], native)


def test_int8_output_is_scaled_rounded_and_saturated(library: c.CDLL) -> None:
    a, b = ref.data(ref.KINDS[3], 20, 64, 32, 1)
    scales = {"A": 0.5, "B": 0.0078125, "C": 0.75}
    with Matmul(library, 3, 20, 64, 32) as matmul:
        for name, value in scales.items():
            assert matmul.scales(name, np.array([value], np.float32)) == 0
        got = run(matmul, 3, a, b)
    real = ref.product(a, b) * scales["A"] * scales["B"] / scales["C"]
    assert (np.abs(real) > 128).any()
    want = np.clip(np.rint(real), -128, 127)
    on_a_tie = np.abs(real - np.trunc(real)) == 0.5
    assert np.all(np.abs(got - want)[~on_a_tie] == 0)
    assert np.all(np.abs(got - np.clip(real, -128, 127)) <= 0.5 + 1e-4)


def test_a_channel_scale_multiplies_its_column(library: c.CDLL) -> None:
    scale = np.linspace(0.25, 4, 64).astype(np.float32)
    for code in (5, 6, 7, 8, 9, 15):
        a, b = ref.data(ref.KINDS[code], 9, 64, 64, code, small=True)
        with Matmul(library, code, 9, 64, 64, b_quant=PER_CHANNEL) as matmul:
            assert matmul.scales("B", scale) == 0
            got = run(matmul, code, a, b)
        want = (ref.product(a, b).astype(np.float32) * scale).astype(got.dtype)
        assert np.array_equal(got, want), code


def test_per_channel_int32_brings_b_to_the_largest_scale_and_reports_it(library: c.CDLL) -> None:
    a, b = ref.data(ref.KINDS[2], 9, 64, 32, 2)
    scale = np.geomspace(0.01, 1.5, 32).astype(np.float32)
    common = c.c_float()
    with Matmul(library, 2, 9, 64, 32, b_quant=PER_CHANNEL) as matmul:
        assert matmul.scales("B", scale) == 0
        got = run(matmul, 2, a, b)
        assert library.rknn_matmul_get_quant_params(matmul.ctx, None, c.byref(common)) == 0
    assert common.value == scale.max()
    exact = ref.product(a, b) * scale
    error = np.abs(got * np.float64(common.value) - exact)
    # Each element of B moved by at most half a step of the common scale.
    assert np.all(error <= np.abs(a.astype(np.float64)).sum(1, keepdims=True) * 0.5 * common.value * 1.001)
    assert error.max() > 0


def test_scales_set_between_two_runs_count_in_the_second(library: c.CDLL) -> None:
    a, b = ref.data(ref.KINDS[3], 4, 64, 32, 8, small=True)
    with Matmul(library, 3, 4, 64, 32) as matmul:
        plain = run(matmul, 3, a, b).astype(np.int64)
        for name, value, factor in (("A", 2.0, 2), ("B", 2.0, 4), ("C", 4.0, 1)):
            assert matmul.scales(name, np.array([value], np.float32)) == 0
            assert matmul.run() == 0
            got = ref.unpack_c(matmul.bytes("C").copy(), "i8", 4, 32, False)
            assert np.array_equal(got, np.clip(ref.product(a, b) * factor, -128, 127)), name
        assert np.array_equal(got, plain)
    with Matmul(library, 2, 4, 64, 32, b_quant=PER_CHANNEL) as matmul:
        first = run(matmul, 2, a, b)
        assert np.array_equal(first, ref.product(a, b))
        assert matmul.scales("B", np.where(np.arange(32) % 2, 1, 1 / 256).astype(np.float32)) == 0
        assert matmul.run() == 0
        got = ref.unpack_c(matmul.bytes("C").copy(), "i32", 4, 32, False)
        assert np.array_equal(got[:, 1::2], first[:, 1::2])
        assert not got[:, 0::2].any()  # B of at most 3 / 256 rounds to nothing at the common scale


def test_subnormal_fp16_output_is_rounded_to_nearest_even(library: c.CDLL) -> None:
    """Sums of odd numbers times 2^-25, half the smallest fp16 step, are all ties."""
    a, b = np.ones((1, 32), np.int8), np.zeros((32, 64), np.int8)
    b[0] = np.arange(64) % 15 - 7
    b[1] = np.arange(64) // 15
    for exponent in (-24, -25, -26):
        with Matmul(library, 15, 1, 32, 64) as matmul:
            assert matmul.scales("A", np.array([2.0**exponent], np.float32)) == 0
            got = run(matmul, 15, a, b)
        want = (ref.product(a, b) * 2.0**exponent).astype(np.float16)
        assert np.array_equal(got, want), exponent


def test_without_params_every_scale_is_one(library: c.CDLL) -> None:
    common = c.c_float(-1)
    a, b = ref.data(ref.KINDS[2], 3, 32, 32, 3)
    with Matmul(library, 2, 3, 32, 32, b_quant=PER_CHANNEL) as matmul:
        assert np.array_equal(run(matmul, 2, a, b), ref.product(a, b))
        assert library.rknn_matmul_get_quant_params(matmul.ctx, None, c.byref(common)) == 0
    assert common.value == 1


@pytest.mark.parametrize("code", [3, 5, 7, 9, 15])
def test_a_group_scale_multiplies_its_part_of_k(library: c.CDLL, code: int) -> None:
    K, N, group = 128, 64, 32
    a, b = ref.data(ref.KINDS[code], 5, K, N, code, small=True)
    scale = np.random.default_rng(code).choice(np.array([0.25, 0.5, 1, 2], np.float32), (K // group, N))
    native = {"b_layout": NATIVE, "ac_layout": NATIVE}
    with Matmul(library, code, 5, K, N, b_quant=PER_GROUP, group_size=group, **native) as matmul:
        assert matmul.scales("B", scale.reshape(-1)) == 0
        got = run(matmul, code, a, b, native=True)
    real = a.astype(np.float64) @ (b * np.repeat(scale.astype(np.float64), group, axis=0))
    want = np.clip(np.rint(real), -128, 127) if ref.KINDS[code].c == "i8" else real
    assert np.array_equal(got.astype(np.float64), want)


def test_params_of_the_wrong_name_length_or_zero_point_are_refused(library: c.CDLL, capfd: Any) -> None:
    one = np.ones(1, np.float32)
    with Matmul(library, 2, 2, 32, 32, b_quant=PER_CHANNEL) as matmul:
        assert matmul.scales("D", one) == -5
        assert matmul.scales("AB", one) == -5
        assert matmul.scales("A", np.ones(2, np.float32)) == -5
        assert "scale_len and zp_len must 1" in capfd.readouterr().err
        assert matmul.scales("B", one) == -5
        assert matmul.scales("B", np.ones(33, np.float32)) == -5
        assert matmul.scales("B", np.ones(0, np.float32)) == -5
        assert "scale_len must > 0" in capfd.readouterr().err
        assert matmul.scales("A", one, zp=0) == 0
        assert matmul.scales("A", one, zp=3) == -5
        assert "zp: 3 is unsupport" in capfd.readouterr().err
        assert matmul.scales("A", np.array([np.nan], np.float32)) == -5
        assert matmul.scales("C", np.zeros(1, np.float32)) == -5
        assert library.rknn_matmul_set_quant_params(matmul.ctx, None) == -5


def test_get_quant_params_is_for_per_channel_type_2_alone(library: c.CDLL) -> None:
    value = c.c_float()
    with Matmul(library, 2, 2, 32, 32) as layer, Matmul(library, 3, 2, 32, 32, b_quant=PER_CHANNEL) as other:
        assert library.rknn_matmul_get_quant_params(layer.ctx, None, c.byref(value)) == -5
        assert library.rknn_matmul_get_quant_params(other.ctx, None, c.byref(value)) == -5


def convert(library: c.CDLL, b: ref.Array, code: int) -> tuple[int, ref.Array]:
    """The converter's answer; the input holds int4 unpacked, one value per byte."""
    K, N = b.shape
    size = b.nbytes // 2 if ref.KINDS[code].b == "i4" else b.nbytes
    out = np.full(size, 0xA5, np.uint8)
    data = np.ascontiguousarray(b)
    call = library.rknn_B_normal_layout_to_native_layout
    call.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_int, c.c_void_p]
    return int(call(data.ctypes.data, out.ctypes.data, K, N, c.byref(Info(1, K, N, code)))), out


@given(
    code=st.sampled_from([1, 2, 7, 9, 10]),
    k=st.integers(1, 300),
    n=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=40, deadline=None)
def test_the_converter_gives_the_native_layout(library: c.CDLL, code: int, k: int, n: int, seed: int) -> None:
    kind = ref.KINDS[code]
    _, b = ref.data(kind, 1, 32 * k, 64 * n, seed)
    status, out = convert(library, b, code)
    assert status == 0
    assert np.array_equal(out, ref.pack_b(b, kind.b, NATIVE).view(np.uint8).reshape(-1))


def test_the_converter_refuses_overlap_misalignment_and_unknown_types(library: c.CDLL) -> None:
    call = library.rknn_B_normal_layout_to_native_layout
    call.argtypes = [c.c_void_p, c.c_void_p, c.c_int, c.c_int, c.c_void_p]
    buffer = np.zeros(8192, np.uint8)
    at, info = buffer.ctypes.data, Info(1, 64, 32, 2)
    assert call(at, at, 64, 32, c.byref(info)) == -5
    assert call(at, at + 64, 64, 32, c.byref(info)) == -5
    assert call(at, at + 4096, 63, 32, c.byref(info)) == -5
    assert call(at, at + 4096, 64, 16, c.byref(info)) == -5
    assert call(at, at + 4096, 64, 32, c.byref(Info(1, 64, 32, 13))) == -5
    assert call(None, at, 64, 32, c.byref(info)) == -5
    assert call(at, at + 4096, 64, 32, None) == -5
    assert call(at, at + 4096, 64, 32, c.byref(info)) == 0
    assert call(at, at + 2048, 64, 32, c.byref(info)) == 0
    assert call(at, at + 2047, 64, 32, c.byref(info)) == -5
    int4 = Info(1, 64, 64, 10)  # 4096 bytes in, 2048 out
    assert [call(at + 2048, at + start, 64, 64, c.byref(int4)) for start in (0, 1, 6144, 6143)] == [0, -5, 0, -5]
