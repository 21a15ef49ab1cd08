# SPDX-License-Identifier: Apache-2.0
"""Cells of keys and values: the formats' bits, rotation, cutting back, rings, bytes."""

from __future__ import annotations

import numpy as np
import pytest
from gguf import GGMLQuantizationType
from gguf.quants import dequantize, quantize
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.errors import ContextFull, UsageError
from reference_engine.kernels.library import KernelLibrary
from reference_engine.kv_cache import KvCache
from reference_engine.kv_cache_formats import FORMATS, decode, encode, hadamard, rotation_sizes
from reference_engine.vector_ops_math import F32
from tests.vector.attention_case import Case, same_bits

QUANTISED = {"q8_0": GGMLQuantizationType.Q8_0, "q4_0": GGMLQuantizationType.Q4_0}


def rows(n: int, dim: int, seed: int) -> F32:
    """Rows of widely different sizes, some values exactly halves of a step, some zero."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, dim)) * 10.0 ** rng.integers(-6, 4, (n, dim // 32)).repeat(32, axis=1)
    x[rng.random(x.shape) < 0.1] = 0
    if seed % 3 == 0:
        x = np.round(x * 2) / 2
    return x.astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 8), st.integers(0, 10**6), st.sampled_from(list(QUANTISED)))
def test_quantised_rows_are_those_of_the_gguf_package(n: int, blocks: int, seed: int, kind: str) -> None:
    # Zeros are positive here: for a block that begins with -0 the package's scale has not the sign of ggml's.
    x = rows(n, 32 * blocks, seed) + np.float32(0)
    codes, scales = encode(x, FORMATS[kind])
    packed = quantize(x, QUANTISED[kind]).reshape(n, blocks, -1)
    assert (packed[:, :, :2].copy().view(np.float16)[..., 0].view(np.uint16) == scales.view(np.uint16)).all()
    assert (packed[:, :, 2:].reshape(n, -1) == codes.view(np.uint8)).all()
    assert same_bits(decode(codes, scales, FORMATS[kind]), dequantize(packed.reshape(n, -1), QUANTISED[kind]))


@settings(max_examples=30, deadline=None)
@given(
    kinds=st.tuples(st.sampled_from(list(FORMATS)), st.sampled_from(list(FORMATS))),
    dims=st.tuples(st.sampled_from([32, 64, 128]), st.sampled_from([32, 64, 192])),
    how=st.tuples(st.integers(0, 10**6), st.booleans()),
)
def test_c_stores_the_bits_that_numpy_stores(
    kernels: KernelLibrary, paths: list[str], kinds: tuple[str, str], dims: tuple[int, int], how: tuple[int, bool]
) -> None:
    seed, rotate = how
    k = rows(2 * 21, dims[0], seed).reshape(21, 2, dims[0])
    v = rows(2 * 21, dims[1], seed + 1).reshape(21, 2, dims[1])

    def stored(library: KernelLibrary | None) -> bytes:
        cache = KvCache(
            1,
            2,
            dims[0],
            64,
            type_k=kinds[0],
            type_v=kinds[1],
            rotate=rotate,
            head_dim_v=dims[1],
            kernels=library,
            threads=2,
        )
        layer = cache.layer(0)
        for part in (slice(0, 1), slice(1, 21)):
            layer.append(k[part], v[part], np.arange(21, dtype=np.int32)[part])
        return b"".join(a.tobytes() for a in (layer.k_codes, layer.k_scales, layer.v_codes, layer.v_scales))

    right = stored(None)
    for path in paths:
        assert kernels.use_path(path)
        assert stored(kernels) == right, path


def test_a_value_that_is_no_number_is_not_lost_in_a_quantised_row(kernels: KernelLibrary) -> None:
    for kind in QUANTISED:
        for library in (kernels, None):
            cache = KvCache(1, 1, 32, 64, type_k=kind, type_v=kind, kernels=library)
            x = np.ones((1, 1, 32), np.float32)
            x[0, 0, 5] = np.inf
            cache.layer(0).append(x, x, np.zeros(1, np.int32))
            assert not np.isfinite(cache.layer(0).values(0, 0, 1)).all(), kind


def test_the_rotation_is_the_orthonormal_walsh_hadamard_matrix() -> None:
    matrix = np.ones((1, 1))
    while len(matrix) < 64:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    x = np.random.default_rng(0).normal(size=(3, 128)).astype(np.float32)
    right = (x.reshape(-1, 64).astype(np.float64) @ (matrix / 8)).reshape(3, 128)
    assert np.abs(hadamard(x, 64) - right).max() < 1e-6
    assert np.abs(hadamard(hadamard(x, 64), 64) - x).max() < 1e-6


def test_rotation_takes_the_sizes_that_llama_cpp_takes() -> None:
    sizes = {
        dims: rotation_sizes(*dims, uniform=True) for dims in [(64, 64), (128, 128), (256, 256), (192, 128), (80, 96)]
    }
    assert sizes == {
        (64, 64): (64, 64),
        (128, 128): (128, 64),
        (256, 256): (256, 64),
        (192, 128): (64, 64),
        (80, 96): (0, 0),
    }
    assert rotation_sizes(128, 128, uniform=False) == (0, 0)


def test_only_quantised_types_are_rotated() -> None:
    layer = KvCache(1, 1, 64, 64, type_k="q4_0", type_v="f16", rotate=True).layer(0)
    assert (layer.rot_k, layer.rot_v) == (64, 0)
    assert KvCache(1, 1, 64, 64, type_k="q4_0").layer(0).rot_k == 0
    mixed = KvCache(2, 1, [64, 128], 64, type_k="q4_0", type_v="q4_0", rotate=True, head_dim_v=64)
    assert [(layer.rot_k, layer.rot_v) for layer in map(mixed.layer, range(2))] == [(0, 64), (0, 64)]


def test_rotation_halves_what_an_outlier_costs_its_row() -> None:
    x = np.random.default_rng(0).normal(0, 1, (40, 1, 128)).astype(np.float32)
    x[:, :, 7] *= 20
    lost = []
    for rotate in (False, True):
        layer = KvCache(1, 1, 128, 64, type_k="q8_0", type_v="q8_0", rotate=rotate).layer(0)
        layer.append(x, x, np.arange(40, dtype=np.int32))
        rows = layer.values(0, 0, 40)
        lost.append(float((((hadamard(rows, 64) if rotate else rows) - x[:, 0]) ** 2).sum()))
    assert lost[1] < lost[0] / 2


@pytest.mark.parametrize("window", [0, 20])
@pytest.mark.parametrize("kind", list(FORMATS))
def test_after_a_cut_the_bits_are_as_if_the_tokens_had_never_been(
    kernels: KernelLibrary, kind: str, window: int
) -> None:
    case = Case(tokens=60, type_k=kind, type_v=kind, window=window)
    for library in (kernels, None):
        right = case.run(library)
        cache = case.cache(library)
        case.run(library, 1, [50], cache)
        noise = np.full((8, 2, 64), 9.0, np.float32)
        cache.layer(0).append(noise, -noise, np.arange(50, 58, dtype=np.int32))
        cache.n_past = 58
        cache.truncate(43)
        assert cache.n_past == 43
        assert same_bits(case.run(library, 1, [7, 10], cache), right[43:])


def test_a_ring_refuses_a_cut_that_needs_rows_it_has_given_away() -> None:
    case = Case(tokens=300, window=20)
    cache = case.cache()
    case.run(None, 1, [16] * 18, cache)
    with pytest.raises(UsageError, match="keep the last tokens only"):
        cache.truncate(100)
    assert cache.n_past == 288
    cache.truncate(0)
    assert same_bits(case.run(None, 1, [16, 16], cache), case.run(None, 1, [32]))


def test_a_cut_back_and_forth_through_a_ring_keeps_the_bits(kernels: KernelLibrary) -> None:
    case = Case(tokens=260, window=20)
    right = case.run(kernels)
    cache = case.cache(kernels)
    done = 0
    for n in [16] * 16:
        answer = case.run(kernels, 1, [n], cache)
        assert same_bits(answer, right[done : done + n])
        cache.truncate(done + n - 5)
        done = cache.n_past


def test_the_context_is_not_exceeded() -> None:
    layer = KvCache(1, 1, 8, 10).layer(0)
    x = np.zeros((3, 1, 8), np.float32)
    layer.append(x, x, np.arange(7, 10, dtype=np.int32))
    with pytest.raises(ContextFull, match="position 10 is beyond the context of 10 tokens"):
        layer.append(x, x, np.arange(8, 11, dtype=np.int32))


def test_bytes_are_those_of_ggmls_rows_and_a_window_bounds_them() -> None:
    per_row = {"f32": 256, "f16": 128, "q8_0": 68, "q4_0": 36}
    for kind, size in per_row.items():
        cache = KvCache(3, [2, 0, 2], 64, 4096, type_k=kind, type_v="f16", windows=[0, 0, 512])
        cache.n_past = 4000
        assert cache.bytes_used() == [4000 * 2 * (size + 128), 0, 1024 * 2 * (size + 128)]
        assert cache.bytes_allocated()[0] == 4096 * 2 * (size + 128)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"type_k": "q5_1"}, "no KV cache type 'q5_1'"),
        ({"type_k": "q8_0", "head_dim": 40}, "a q8_0 cache needs key heads of a multiple of 32"),
        ({"head_dim": 20}, "multiple of 8"),
        ({"head_dim": 2048}, "up to 1024"),
        ({"n_kv_heads": [1, 2]}, "2 values for 1 layers"),
    ],
)
def test_what_no_cache_can_be_is_refused(options: dict[str, object], message: str) -> None:
    arguments: dict[str, object] = {"n_layers": 1, "n_kv_heads": 1, "head_dim": 64, "n_ctx": 64, **options}
    with pytest.raises(UsageError, match=message):
        KvCache(**arguments)  # type: ignore[arg-type]


def test_a_layer_without_keys_of_its_own_says_so() -> None:
    with pytest.raises(LookupError, match="layer 1 has no keys"):
        KvCache(2, [1, 0], 64, 64).layer(1)
