# SPDX-License-Identifier: Apache-2.0
"""Scratch arrays: of the sizes of their layer, none inside another, and pointers that live as long as they are used."""

from __future__ import annotations

import gc
import itertools
import weakref

import numpy as np
import pytest

from reference_engine.kernels.library import KernelLibrary, load_library
from reference_engine.workspace import LayerShape, Workspace

SMALL = LayerShape(n_embd=8, heads=2, kv_heads=1, key=8, value=16, n_ff=24)
LARGE = LayerShape(n_embd=8, heads=4, kv_heads=2, key=16, value=8, n_ff=48)


@pytest.fixture
def kernels() -> KernelLibrary:
    library = load_library()
    if library is None:
        pytest.skip("the kernels are not built")
    return library


@pytest.mark.parametrize("shapes", [(SMALL, LARGE, SMALL), (LARGE, SMALL), (SMALL,)])
def test_every_layer_has_arrays_of_its_own_sizes(shapes: tuple[LayerShape, ...]) -> None:
    space = Workspace(shapes)
    for m in (1, 5, 3, 7, 1):
        for shape, rows in zip(shapes, space.at(m), strict=True):
            assert rows.x.shape == rows.h.shape == rows.y.shape == (m, shape.n_embd)
            assert rows.q.shape == (m, shape.heads, shape.key)
            assert rows.k.shape == (m, shape.kv_heads, shape.key)
            assert rows.v.shape == (m, shape.kv_heads, shape.value)
            assert rows.attended.shape == (m, shape.heads * shape.value)
            assert [part.shape for part in rows.gate_up] == [(m, shape.n_ff)] * 2
            assert all(array.flags.c_contiguous for array in rows.arrays())


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_arrays_that_are_used_together_share_no_memory(shape: LayerShape) -> None:
    (_, rows) = Workspace((SMALL, shape)).at(4)
    apart = [rows.x, rows.h, *rows.qkv, rows.attended, *rows.gate_up, rows.y]
    for one, other in itertools.combinations(apart, 2):
        assert not np.shares_memory(one, other)
    for heads, flat in zip((rows.q, rows.k, rows.v), rows.qkv, strict=True):
        assert np.shares_memory(heads, flat)


def test_arrays_stay_the_same_until_more_rows_are_wanted() -> None:
    space = Workspace((SMALL,))
    one, four = space.at(1), space.at(4)
    assert space.at(4) is four
    assert space.at(1) is not one  # four rows took new memory
    assert np.shares_memory(space.at(1)[0].x, four[0].x)


def test_many_numbers_of_rows_do_not_pile_up(kernels: KernelLibrary) -> None:
    space = Workspace((SMALL,), kernels)
    for m in range(200, 0, -1):
        space.at(m)
    assert len(kernels._pinned) < 20 * 12
    space.clear()
    assert not kernels._pinned


def test_a_pinned_array_is_kept_until_it_is_let_go(kernels: KernelLibrary) -> None:
    array = np.arange(4, dtype=np.float32)
    kernels.pin(array)
    assert kernels.floats(array)[3] == 3
    array[3] = 7
    assert kernels.floats(array)[3] == 7
    alive = weakref.ref(array)
    del array
    gc.collect()
    kept = alive()
    assert kept is not None  # else its id might become another array's
    kernels.unpin(kept)
    kernels.unpin(kept)
    del kept
    gc.collect()
    assert alive() is None
