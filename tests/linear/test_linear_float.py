# SPDX-License-Identifier: Apache-2.0
"""The float back end: its order of sums, its types, its bits."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.backends import dequantize_rows
from reference_engine.backends.choose import make_backend
from reference_engine.backends.float_product import product
from reference_engine.kernels.library import KernelLibrary
from tests.linear.crafted_tensor import SCALES_AT, float_tensor, random_tensor

TYPES = [*SCALES_AT, "F32", "F16", "BF16", "MXFP4"]
IN_C = [name for name in TYPES if name != "TQ2_0"]


def single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def in_sixteen_lanes(x: list[float], w: list[float]) -> float:
    """The definition, one number at a time."""
    lanes = [0.0] * 16
    for k, (a, b) in enumerate(zip(x, w, strict=True)):
        lanes[k % 16] = single(lanes[k % 16] + single(a * b))
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [single(lanes[i] + lanes[i + half]) for i in range(half)]
    return lanes[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 5), st.integers(1, 9), st.integers(1, 70), st.integers(0, 2**32))
def test_products_have_the_order_of_the_definition(kernels: KernelLibrary, m: int, n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((m, k)) * 10.0 ** rng.integers(-6, 6, (m, k))).astype(np.float32)
    w = rng.standard_normal((n, k)).astype(np.float32)
    wanted = np.array([[in_sixteen_lanes(a, b) for b in w.tolist()] for a in x.tolist()], np.float32)
    found = np.empty((m, n), np.float32)
    product(x, w, found)
    assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32))
    native = make_backend("float", kernels=kernels, threads=2).linear(float_tensor(w))(x)
    assert np.array_equal(native.view(np.uint32), wanted.view(np.uint32))


def test_another_order_of_sums_would_be_seen() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((4, 64)).astype(np.float32), rng.standard_normal((8, 64)).astype(np.float32)
    found = np.empty((4, 8), np.float32)
    product(x, w, found)
    assert not np.array_equal(found, (x[:, None, :] * w[None]).sum(axis=2))


@pytest.mark.parametrize("type_name", TYPES)
def test_c_equals_numpy_for_every_type(kernels: KernelLibrary, paths: list[str], type_name: str) -> None:
    rng = np.random.default_rng(2)
    tensor = random_tensor(rng, type_name, 768, 70)
    x = rng.standard_normal((7, 768)).astype(np.float32)
    wanted = make_backend("float", kernels=None).linear(tensor)(x)
    for path in paths:
        kernels.use_path(path)
        for threads in (1, 3):
            found = make_backend("float", kernels=kernels, threads=threads).linear(tensor)(x)
            assert np.array_equal(found.view(np.uint32), wanted.view(np.uint32)), (path, threads)


@pytest.mark.parametrize("type_name", IN_C)
def test_dequantised_rows_have_the_bits_of_the_gguf_package(
    kernels: KernelLibrary, paths: list[str], type_name: str
) -> None:
    tensor = random_tensor(np.random.default_rng(3), type_name, 512, 40)
    raw = tensor.raw()
    plain = {"F32": np.float32, "F16": np.float16}.get(type_name)
    wanted = raw.view(plain).astype(np.float32) if plain else dequantize(raw, GGMLQuantizationType(tensor.type.number))
    ids = [39, 0, 7, 7]
    for path in paths:
        kernels.use_path(path)
        found = dequantize_rows(tensor, ids, kernels)
        assert np.array_equal(found.view(np.uint32), wanted[ids].view(np.uint32)), path
    assert np.array_equal(dequantize_rows(tensor, ids, None), wanted[ids])


def test_every_half_has_its_value(kernels: KernelLibrary) -> None:
    halves = np.arange(65536, dtype=np.uint16)
    halves = halves[np.isfinite(halves.view(np.float16))]
    ids, out = np.zeros(1, np.int64), np.empty(halves.size, np.float32)
    data = halves.view(np.uint8)
    raw, rows, into = kernels.bytes(data), kernels.pointer(ids), kernels.floats(out)
    kernels.lib.ek_dequant_rows(1, raw, data.size, rows, 1, out.size, into, 1)
    wanted = [struct.unpack("<e", struct.pack("<H", half))[0] for half in halves.tolist()]
    assert np.array_equal(out.view(np.uint32), np.array(wanted, np.float32).view(np.uint32))


def test_a_row_that_is_not_there_is_refused(kernels: KernelLibrary) -> None:
    tensor = random_tensor(np.random.default_rng(3), "Q8_0", 32, 4)
    for ids in ([4], [-1], [0, 4]):
        for library in (kernels, None):
            with pytest.raises(IndexError):
                dequantize_rows(tensor, ids, library)


def test_a_column_alone_has_the_bits_it_has_in_the_whole(kernels: KernelLibrary) -> None:
    rng = np.random.default_rng(5)
    w, x = rng.standard_normal((300, 200)).astype(np.float32), rng.standard_normal((6, 200)).astype(np.float32)
    backend = make_backend("float", kernels=kernels, threads=2)
    whole = backend.linear(float_tensor(w))(x)
    for n in (0, 63, 64, 299):
        assert np.array_equal(backend.linear(float_tensor(w[n : n + 1]))(x)[:, 0], whole[:, n])
