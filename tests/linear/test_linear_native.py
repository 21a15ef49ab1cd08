# SPDX-License-Identifier: Apache-2.0
"""The C kernels against the numpy twin, bit for bit: every preset, path and number of threads, and every batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from reference_engine.backends.choose import make_backend
from reference_engine.backends.interface import MatmulRecord
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.backends.pipeline import CHOICES, Pipeline
from reference_engine.backends.presets import PRESETS
from reference_engine.kernels.library import KernelLibrary
from tests.linear.crafted_tensor import float_tensor, random_tensor

F32 = NDArray[np.float32]
ALL = [name for name, p in PRESETS.items() if p.route == "all"]
INVARIANT = [name for name in ALL if PRESETS[name].batch_invariant]


def bits(x: F32) -> NDArray[np.uint32]:
    return x.view(np.uint32)


def values(seed: int, *shape: int) -> F32:
    return np.random.default_rng(seed).standard_t(4, shape).astype(np.float32)


@pytest.mark.parametrize("name", ALL)
def test_c_equals_numpy_on_every_path_and_number_of_threads(
    kernels: KernelLibrary, paths: list[str], name: str
) -> None:
    p = replace(PRESETS[name], k_limit=192)
    tensor, x = random_tensor(np.random.default_rng(1), "Q8_0", 416, 331), values(2, 17, 416)
    twin = NpuBackend(p, None, 1)
    wanted = twin.linear(tensor)(x)
    for path in paths:
        assert kernels.use_path(path)
        for threads in (1, 2, 3):
            native = NpuBackend(p, kernels, threads)
            assert np.array_equal(bits(native.linear(tensor)(x)), bits(wanted)), (path, threads)
            assert np.array_equal(native.counters["x"].values, twin.counters["x"].values), (path, threads)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_c_equals_numpy_for_any_parameters(kernels: KernelLibrary, data: st.DataObject) -> None:
    chosen: dict[str, Any] = {
        key: data.draw(st.sampled_from(options)) for key, options in CHOICES.items() if key != "route"
    }
    if chosen["activation"] == "fp16" and chosen["weight_scale"] == "rank-one":
        chosen["weight_scale"] = "channel"
    p = Pipeline(
        "drawn", **chosen, k_limit=data.draw(st.sampled_from([0, 5, 32, 8192])),
        k_align=data.draw(st.sampled_from([1, 8, 32])), n_align=data.draw(st.sampled_from([1, 8, 16, 64])),
        cores=data.draw(st.integers(1, 4)), clamp=data.draw(st.booleans()), fma=data.draw(st.booleans()),
        a_clip=data.draw(st.sampled_from([1.0, 0.9, 0.02])), b_clip=data.draw(st.sampled_from([1.0, 0.5])),
    )  # fmt: skip
    m, n, k = data.draw(st.integers(1, 30)), data.draw(st.integers(1, 130)), data.draw(st.integers(1, 150))
    seed, power = data.draw(st.integers(0, 999)), data.draw(st.sampled_from([0, 0, 3, -30, -38, -42]))
    w, x = values(seed, n, k), (values(seed + 1, m, k).astype(np.float64) * 10.0**power).astype(np.float32)
    tensor = float_tensor(w)
    wanted = NpuBackend(p, None, 1).linear(tensor)(x)
    found = NpuBackend(p, kernels, data.draw(st.integers(1, 3))).linear(tensor)(x)
    assert np.array_equal(found, wanted, equal_nan=True)


@pytest.mark.parametrize("k", [8192 + 32, 15360])
@pytest.mark.parametrize("name", ["w8a8-per-channel", "w8a8-rank-one", "w8a8-hadamard", "w4a4-hadamard-padded"])
def test_c_equals_numpy_beyond_the_k_limit(kernels: KernelLibrary, name: str, k: int) -> None:
    tensor, x = random_tensor(np.random.default_rng(k), "Q4_0", k, 72), values(3, 3, k)
    wanted = NpuBackend(PRESETS[name], None, 1).linear(tensor)(x)
    assert np.array_equal(bits(NpuBackend(PRESETS[name], kernels, 2).linear(tensor)(x)), bits(wanted))


@pytest.mark.parametrize("name", [*INVARIANT, "float"])
def test_a_row_alone_has_the_bits_it_has_in_a_batch(kernels: KernelLibrary, paths: list[str], name: str) -> None:
    tensor = random_tensor(np.random.default_rng(4), "Q4_1", 352, 100)
    x = values(5, 300, 352)
    text = name if name == "float" else f"npu:{name},k_limit=160"
    for path in paths:
        kernels.use_path(path)
        linear = make_backend(text, kernels=kernels, threads=2).linear(tensor)
        whole = linear(x)
        for start in (0, 1, 150, 291):
            for m in range(1, 10):
                part = linear(np.ascontiguousarray(x[start : start + m]))
                assert np.array_equal(bits(part), bits(whole[start : start + m])), (path, start, m)


def test_one_scale_per_activation_matrix_is_said_to_depend_on_the_batch() -> None:
    assert [name for name in ALL if name not in INVARIANT] == ["w8a8-per-tensor-both"]


@pytest.mark.parametrize("name", ALL)
def test_a_group_and_an_observed_call_give_the_bits_of_single_calls(kernels: KernelLibrary, name: str) -> None:
    rng = np.random.default_rng(6)
    tensors = [random_tensor(rng, "Q8_0", 128, n, name=f"w{n}") for n in (160, 40, 41)]
    x, records = values(7, 5, 128), list[MatmulRecord]()
    backend = make_backend(f"npu:{name},k_limit=96", kernels=kernels, threads=2)
    group = backend.group(tensors)
    together = group(x)
    outs = [np.full_like(y, np.nan) for y in together]
    assert all(a is b for a, b in zip(group(x, outs), outs, strict=True))
    backend.observer = records.append
    for tensor, y, into in zip(tensors, together, outs, strict=True):
        assert np.array_equal(bits(backend.linear(tensor)(x)), bits(y))
        assert np.array_equal(bits(into), bits(y))
    assert [record.name for record in records] == ["w160", "w40", "w41"]
    for record in records:
        check_record(backend.pipeline, record, x)  # type: ignore[attr-defined]


def check_record(p: Pipeline, record: MatmulRecord, x: F32) -> None:
    """The sums are those of the recorded integers and the segments cover the weight."""
    assert record.x is x
    assert [(s.k0, s.k1) for s in record.segments if s.n0 == 0] == list(p.k_segments(128))
    assert {(s.n0, s.n1) for s in record.segments} == set(p.n_segments(record.y.shape[1]))
    for s in record.segments:
        assert s.q.shape == (5, s.k1 - s.k0)
        assert s.sums.shape == (5, s.n1 - s.n0)
        assert s.scale.shape == (5,)
        assert s.weight_scale.shape == (s.n1 - s.n0,)
        assert s.sums.dtype == {8: np.int32, 4: np.int16, 16: np.float32}[p.bits]


@pytest.mark.parametrize("name", ALL)
def test_weights_unpacked_from_c_are_those_of_numpy(kernels: KernelLibrary, name: str) -> None:
    p = replace(PRESETS[name], k_limit=96)
    tensor = random_tensor(np.random.default_rng(8), "Q6_K", 256, 75)
    a = NpuBackend(p, None, 1).build(tensor, p)
    b = NpuBackend(p, kernels, 2).build(tensor, p)
    assert len(a.segments) == len(b.segments)
    for i, (s, t) in enumerate(zip(a.segments, b.segments, strict=True)):
        assert (s.k0, s.k1, s.n0, s.n1, s.k_index, s.activation) == (t.k0, t.k1, t.n0, t.n1, t.k_index, t.activation)
        assert np.array_equal(s.scale, t.scale)
        assert s.fold is t.fold is None or np.array_equal(np.asarray(s.fold), np.asarray(t.fold))
        assert np.array_equal(a.quantized(i), b.quantized(i))


def test_a_type_without_a_c_dequantiser_goes_through_the_gguf_package(kernels: KernelLibrary) -> None:
    tensor = random_tensor(np.random.default_rng(9), "TQ2_0", 512, 40)
    assert not kernels.lib.ek_dequant_known(tensor.type.number)
    x = values(1, 2, 512)
    for text in ("float", "npu:w8a8-segment", "npu:w8a8-rank-one"):
        wanted = make_backend(text, kernels=None).linear(tensor)(x)
        assert np.array_equal(make_backend(text, kernels=kernels, threads=2).linear(tensor)(x), wanted)


def test_a_fault_in_one_weight_is_seen_by_the_comparison(kernels: KernelLibrary) -> None:
    tensor, x = random_tensor(np.random.default_rng(1), "Q8_0", 416, 331), values(2, 17, 416)
    p = replace(PRESETS["w8a8-per-channel"], k_limit=192)
    wanted = NpuBackend(p, None, 1).linear(tensor)(x)
    for change in ({"fma": False}, {"k_limit": 224}, {"a_clip": 0.999}, {"b_clip": 0.999}, {"hadamard": "block"}):
        changed: dict[str, Any] = change
        assert not np.array_equal(NpuBackend(replace(p, **changed), kernels, 2).linear(tensor)(x), wanted), change
