# SPDX-License-Identifier: Apache-2.0
"""The pipelines in numpy against the scalar oracle, bit for bit, over every parameter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.backends import npu_steps, quantizer
from reference_engine.backends.interface import Counter
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.npu_weight import build_weight
from reference_engine.backends.pipeline import CHOICES, Pipeline
from reference_engine.backends.presets import PRESETS
from tests.linear.crafted_tensor import float_tensor
from tests.linear.scalar_oracle import Oracle, Rules

ALIGN = {"int8": 32, "int4": 32, "fp16": 32}


def rules_of(p: Pipeline) -> Rules:
    bits = {"int8": 8, "int4": 4, "fp16": 16}[p.activation]
    return Rules(
        bits, p.weight_scale, p.hadamard, p.k_limit, p.cores, p.clamp, p.fma, p.k_align, p.n_align,
        p.int16_overflow, p.a_clip, p.b_clip, p.activation_scale == "tensor",
    )  # fmt: skip


def same_as_oracle(p: Pipeline, w: np.ndarray[Any, Any], x: np.ndarray[Any, Any]) -> bool:
    tensor = float_tensor(w)
    signs = p.signs(tensor.name, p.k_op(w.shape[1]))
    wanted = np.array(Oracle(w.tolist(), signs.tolist(), rules_of(p))(x.tolist()), np.float32)
    found = NpuBackend(p, None, 1).linear(tensor)(x)
    return np.array_equal(found.view(np.uint32) & 0x7FFFFFFF, wanted.view(np.uint32) & 0x7FFFFFFF) and np.array_equal(
        found, wanted
    )


@st.composite
def pipelines(draw: st.DrawFn) -> Pipeline:
    """Any combination of parameters, with small segments."""
    chosen: dict[str, Any] = {key: draw(st.sampled_from(values)) for key, values in CHOICES.items() if key != "route"}
    if chosen["activation"] == "fp16" and chosen["weight_scale"] == "rank-one":
        chosen["weight_scale"] = "channel"
    return Pipeline(
        "drawn",
        **chosen,
        k_limit=draw(st.sampled_from([0, 4, 9, 16, 8192])),
        k_align=draw(st.sampled_from([1, 4, 8])),
        n_align=draw(st.sampled_from([1, 2, 4])),
        cores=draw(st.integers(1, 3)),
        clamp=draw(st.booleans()),
        fma=draw(st.booleans()),
        a_clip=draw(st.sampled_from([1.0, 1.0, 0.9, 0.3, 0.02])),
        b_clip=draw(st.sampled_from([1.0, 1.0, 0.93, 0.2])),
    )


@st.composite
def numbers(draw: st.DrawFn, rows: int, columns: int) -> np.ndarray[Any, Any]:
    """Values of one or of many magnitudes, with zeros, whole zero rows and subnormal numbers among them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values: np.ndarray[Any, np.dtype[np.float64]] = rng.standard_normal((rows, columns))
    kind = draw(st.sampled_from(["plain", "wide", "zeros", "tiny", "integers"]))
    if kind == "wide":
        values *= 10.0 ** rng.integers(-8, 4, (rows, columns))
    if kind == "zeros":
        values *= rng.integers(0, 2, (rows, 1)) * rng.integers(0, 2, (rows, columns))
    if kind == "tiny":
        values *= 10.0 ** float(rng.integers(-45, -36))
    if kind == "integers":
        values = rng.integers(-127, 128, (rows, columns)).astype(np.float64) * 0.5
    return values.astype(np.float32)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_combination_of_parameters_gives_the_bits_of_the_oracle(data: st.DataObject) -> None:
    p = data.draw(pipelines())
    k, n, m = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 9)), data.draw(st.integers(1, 3))
    assert same_as_oracle(p, data.draw(numbers(n, k)), data.draw(numbers(m, k)))


@pytest.mark.parametrize("name", [name for name, p in PRESETS.items() if p.route == "all"])
def test_presets_give_the_bits_of_the_oracle(name: str) -> None:
    rng = np.random.default_rng(7)
    p = replace(PRESETS[name], k_limit=64)
    assert same_as_oracle(p, rng.standard_t(4, (67, 96)).astype(np.float32), rng.standard_t(4, (2, 96)).astype("f4"))


def _swap_fma(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npu_steps, "fused_multiply_add", lambda a, b, c: a * b + c)


def _no_clamp(monkeypatch: pytest.MonkeyPatch) -> None:
    real = quantizer.to_integers
    monkeypatch.setattr(quantizer, "to_integers", lambda v, p: real(v, replace(p, clamp=False)))


def _half_even(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantizer, "round_half_away", lambda v: np.rint(v.astype(np.float64)))


def _division(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quantizer, "reciprocal", lambda s: np.where(s == 0, np.float32(0), np.float32(1.01) / s))


def _first_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    real = npu_steps.dequantize_scale
    monkeypatch.setattr(npu_steps, "dequantize_scale", lambda a, b, d: real(a, np.full_like(b, b[0]), d))


@pytest.mark.parametrize("fault", [_swap_fma, _no_clamp, _half_even, _division, _first_scale])
def test_a_fault_in_the_engine_is_seen_by_the_oracle(monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    rng = np.random.default_rng(3)
    p = Pipeline("x", k_limit=32, a_clip=0.6, cores=1)
    w = (rng.integers(-254, 255, (16, 96)) / 2).astype(np.float32)
    x = (rng.integers(-254, 255, (3, 96)) / 2).astype(np.float32)
    w[:, ::32], x[:, ::32] = 127.0, 127.0 / np.float32(0.6)
    w[8:], x[2:] = rng.standard_normal((8, 96)), rng.standard_normal((1, 96))
    assert same_as_oracle(p, w, x)
    fault(monkeypatch)
    assert not same_as_oracle(p, w, x)


def test_counters_count_rows_rim_and_clipped_elements() -> None:
    x = np.array([[1, 2, 4, -4], [0, 0, 0, 0], [8, -8, 1, 1]], np.float32)
    weight = build_weight(float_tensor(np.ones((1, 4), np.float32)), Pipeline("x"))
    counter = Counter()
    npu_steps.prepare_a(weight, x, counter)
    assert (counter.calls, counter.rows, counter.elements, counter.rim, counter.clipped) == (1, 3, 12, 4, 0)
    weight = build_weight(float_tensor(np.ones((1, 4), np.float32)), Pipeline("x", a_clip=0.5))
    counter = Counter()
    npu_steps.prepare_a(weight, x, counter)
    assert (counter.rim, counter.clipped) == (5, 4)
