# SPDX-License-Identifier: Apache-2.0
"""A weight that is called again with the arrays of the call before skips its checks, and nothing else."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path

import numpy as np
import pytest

from reference_engine.backends import Backend, NonFinite, make_backend
from reference_engine.backends.interface import MatmulRecord
from reference_engine.gguf_file import GgufFile, open_gguf
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import Recipe

NAME = "blk.0.ffn_up.weight"
GROUP = ("blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.attn_v.weight")


@pytest.fixture
def file(tmp_path: Path) -> GgufFile:
    path = tmp_path / "m.gguf"
    path.write_bytes(Recipe("llama", kind=craft.GGML_Q8_0).file())
    return open_gguf(path)


@pytest.fixture(params=["npu:w8a8-per-channel", "npu:w4a4", "npu:w16a16", "float"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return make_backend(request.param, threads=2)


def rows(m: int, seed: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(seed).standard_normal((m, 96)).astype(np.float32)


def test_arrays_that_were_filled_anew_give_a_new_result(file: GgufFile, backend: Backend) -> None:
    linear, other = backend.linear(file.tensors[NAME]), backend.linear(file.tensors[NAME])
    x, out = rows(2, 1), np.empty((2, 160), np.float32)
    for seed in range(4):
        x[:] = rows(2, seed)
        assert linear(x, out) is out
        assert np.array_equal(out, other(x.copy()))
        # Other arrays in between, and none at all.
        assert np.array_equal(linear(rows(3, 9)), other(rows(3, 9)))
        if seed % 2:
            linear(x, out)
            assert np.array_equal(linear(x), out)


def test_a_group_with_the_same_arrays_gives_a_new_result(file: GgufFile, backend: Backend) -> None:
    group, singles = (
        backend.group([file.tensors[name] for name in GROUP]),
        [backend.linear(file.tensors[name]) for name in GROUP],
    )
    x = rows(2, 1)
    outs = tuple(np.empty((2, member.n_out), np.float32) for member in group.members)
    for seed in range(3):
        x[:] = rows(2, seed)
        found = group(x, outs)
        assert all(one is other for one, other in zip(found, outs, strict=True))
        for y, single in zip(found, singles, strict=True):
            assert np.array_equal(y, single(x.copy()))


def test_nan_is_found_in_arrays_that_were_sound_before(file: GgufFile) -> None:
    backend = make_backend("npu:w8a8-per-channel", threads=1)
    linear, group = backend.linear(file.tensors[NAME]), backend.group([file.tensors[name] for name in GROUP])
    x, out = rows(1, 1), np.empty((1, 160), np.float32)
    outs = tuple(np.empty((1, member.n_out), np.float32) for member in group.members)
    linear(x, out)
    group(x, outs)
    x[0, 5] = np.nan
    with pytest.raises(NonFinite, match=NAME):
        linear(x, out)
    with pytest.raises(NonFinite, match=GROUP[0]):
        group(x, outs)


def test_an_observer_that_comes_later_sees_the_next_call(file: GgufFile, backend: Backend) -> None:
    linear = backend.linear(file.tensors[NAME])
    x, out = rows(1, 1), np.empty((1, 160), np.float32)
    linear(x, out)
    seen: list[MatmulRecord] = []
    backend.observer = seen.append
    linear(x, out)
    backend.observer = None
    linear(x, out)
    assert [record.name for record in seen] == [NAME]


def test_a_result_is_not_kept_alive(file: GgufFile, backend: Backend) -> None:
    linear = backend.linear(file.tensors[NAME])
    x, out = rows(1, 1), np.empty((1, 160), np.float32)
    linear(x, out)
    alive = weakref.ref(out)
    del out
    gc.collect()
    assert alive() is None
    assert linear(x).shape == (1, 160)
