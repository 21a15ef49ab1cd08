# SPDX-License-Identifier: Apache-2.0
"""The elementary functions against Python's own, in ulp of f32, and where the real functions have their limits."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine import vector_ops_math as vm
from reference_engine.vector_ops_math import F32
from reference_engine.vector_ops_numpy import gelu_by_table, gelu_table


def half(x: float) -> float:
    """Rounded to a half float by the struct module."""
    return float(struct.unpack("<e", struct.pack("<e", x))[0])


def single(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def ulps(got: float, right: float) -> float:
    """Distance in units of the last place that f32 has at the right value."""
    if got == right:
        return 0.0
    exponent = max(math.frexp(right)[1] - 24, -149)
    return abs(got - right) / math.ldexp(1.0, exponent)


def softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


ACCURATE: dict[str, tuple[Callable[[F32], F32], Callable[[float], float], float, float, float]] = {
    "exp": (vm.exp, math.exp, -103.0, 88.7, 0.8),
    "tanh": (vm.tanh, math.tanh, -12.0, 12.0, 1.4),
    "sigmoid": (vm.sigmoid, sigmoid, -80.0, 80.0, 2.0),
    "softplus": (vm.softplus, softplus, -80.0, 80.0, 1.5),
    "log": (vm.log, math.log, 1e-30, 1e30, 0.5001),
}


@pytest.mark.parametrize("name", ACCURATE)
def test_a_function_is_within_its_ulps(name: str) -> None:
    function, right, low, high, bound = ACCURATE[name]
    rng = np.random.default_rng(1)
    wide = rng.uniform(low, high, 6000) if name != "log" else np.exp(rng.uniform(math.log(low), math.log(high), 6000))
    near = np.clip(rng.normal(0, 1, 6000), low, high) if name != "log" else rng.uniform(0.5, 2, 6000)
    x = np.concatenate([wide, near]).astype(np.float32)
    worst = max(ulps(float(y), right(float(v))) for v, y in zip(x, function(x), strict=True))
    assert worst <= bound


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "softplus"])
def test_a_function_never_falls_between_neighbouring_thousandths(name: str) -> None:
    x = np.arange(-20, 20, 0.001, dtype=np.float32)
    assert (np.diff(ACCURATE[name][0](x)) >= 0).all()


def test_limits_infinities_and_nan_are_those_of_the_real_functions() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, 100, -150], np.float32)
    with np.errstate(all="ignore"):
        values = {name: function(x).tolist() for name, (function, *_) in ACCURATE.items()}
    assert values["exp"][:2] == [math.inf, 0.0]
    assert values["exp"][3:] == [1.0, 1.0, 1.0, math.inf, 0.0]
    assert values["tanh"][:2] == [1.0, -1.0]
    assert math.copysign(1, values["tanh"][4]) == -1
    assert values["tanh"][5] == single(1e-45)
    assert values["sigmoid"][:2] == [1.0, 0.0]
    assert values["softplus"][:2] == [math.inf, 0.0]
    assert values["log"][0] == math.inf
    assert values["log"][3] == -math.inf
    assert math.isnan(values["log"][1])
    assert all(math.isnan(v[2]) for v in values.values())


def test_denormal_results_of_exp_are_kept() -> None:
    x = np.array([-90.0, -95.0, -100.0, -103.0], np.float32)
    y = vm.exp(x)
    assert (y > 0).all()
    assert all(abs(float(a) - math.exp(float(b))) <= 2.0**-149 for a, b in zip(y, x, strict=True))


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e6, 1e6, width=32))
def test_sine_and_cosine_of_large_angles_are_those_of_the_exact_angle(x: float) -> None:
    sine, cosine = vm.sin_cos(np.array([x], np.float32))
    assert ulps(float(sine[0]), math.sin(x)) <= 0.51
    assert ulps(float(cosine[0]), math.cos(x)) <= 0.51


@settings(max_examples=200, deadline=None)
@given(st.floats(1.0, 1e7), st.integers(1, 256))
def test_the_step_of_rope_is_the_power_rounded_once(base: float, half_dim: int) -> None:
    exponent = single(-1.0 / half_dim)
    assert ulps(float(vm.pow32(base, exponent)), math.pow(base, exponent)) <= 0.5001


def test_gelu_is_the_tanh_form() -> None:
    x = np.linspace(-12, 12, 4001).astype(np.float32)
    for value, y in zip(x.tolist(), vm.gelu(x).tolist(), strict=True):
        u = math.sqrt(2 / math.pi) * (value + 0.044715 * value**3)
        assert abs(y - 0.5 * value * (1 + math.tanh(u))) <= 2e-7 * max(1.0, abs(value))


def test_silu_is_exact_to_a_few_ulps_where_the_plain_form_overflows() -> None:
    x = np.array([-88.9, -89.5, -95.0, -60.0, 3.0], np.float32)
    for value, y in zip(x.tolist(), vm.silu(x).tolist(), strict=True):
        assert ulps(y, value * sigmoid(value)) <= 64  # the product is a denormal from about -92 on


def table_by_libm(value: float) -> float:
    """f16(x/2 (1 + tanh(...))) with every step rounded to f32 and tanh correctly rounded, as a good libm gives it."""
    inner = single(
        single(single(0.7978845608028654) * value) * single(1 + single(single(single(0.044715) * value) * value))
    )
    return half(single(single(0.5 * value) * single(1 + single(math.tanh(inner)))))


def test_the_half_float_table_of_gelu_has_no_entry_off_from_one_made_with_a_correctly_rounded_tanh() -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bits.view(np.float16).astype(np.float32)
    # Beyond 10 and below -10 the table is not looked at; inner products there would overflow a half float.
    looked_at = np.abs(values) < 10
    table = gelu_table()
    off = sum(table_by_libm(float(values[i])) != float(table[i]) for i in np.flatnonzero(looked_at))
    assert looked_at.sum() > 37000
    assert off == 0


def test_numpys_own_tanh_would_put_hundreds_of_entries_of_the_table_off_at_most() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)
    values = values[np.abs(values) < 10]
    inner = np.float32(0.7978845608028654) * values * (np.float32(1) + np.float32(0.044715) * values * values)
    by_numpy = (np.float32(0.5) * values * (np.float32(1) + np.tanh(inner))).astype(np.float16).astype(np.float32)
    assert (by_numpy != gelu_by_table(values)).sum() <= 500


def test_gelu_by_table_is_zero_below_minus_ten_and_the_identity_above_ten() -> None:
    x = np.array([-1e9, -10.0, -9.999, 10.0, 10.001, 7e4], np.float32)
    assert gelu_by_table(x).tolist() == [0.0, 0.0, 0.0, 10.0, single(10.001), 7e4]
