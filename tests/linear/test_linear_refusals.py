# SPDX-License-Identifier: Apache-2.0
"""NaN, infinity, wrong shapes: what is refused, and with which words. And what a missing library costs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reference_engine.backends import NonFinite, make_backend
from reference_engine.backends.presets import PRESETS
from reference_engine.kernels import library as library_module
from reference_engine.kernels.library import KernelLibrary, KernelLibraryError, load_library, why_absent
from tests.linear.crafted_tensor import float_tensor

BACKENDS = ["float", *(f"npu:{name}" for name, p in PRESETS.items() if p.route == "all")]


@pytest.mark.parametrize("text", BACKENDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("native", [False, True])
def test_a_weight_that_is_not_finite_is_named_with_its_row(
    kernels: KernelLibrary, text: str, bad: float, *, native: bool
) -> None:
    w = np.ones((70, 64), np.float32)
    w[37, 63] = w[50, 0] = bad
    backend = make_backend(text, kernels=kernels if native else None, threads=2)
    with pytest.raises(NonFinite, match=r"row 37 of the weight of blk\.0\.test\.weight") as caught:
        backend.linear(float_tensor(w))(np.ones((1, 64), np.float32))
    assert (caught.value.where, caught.value.side, caught.value.row) == ("blk.0.test.weight", "weight", 37)


@pytest.mark.parametrize("text", BACKENDS[1:])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("native", [False, True])
def test_an_activation_that_is_not_finite_is_named_with_its_row(
    kernels: KernelLibrary, text: str, bad: float, *, native: bool
) -> None:
    x = np.ones((40, 64), np.float32)
    x[29, 0] = x[39, 5] = bad
    backend = make_backend(text, kernels=kernels if native else None, threads=2)
    linear = backend.linear(float_tensor(np.ones((70, 64), np.float32)))
    with pytest.raises(NonFinite, match="row 29 of the activation"):
        linear(x)
    backend.observer = lambda record: None
    with pytest.raises(NonFinite, match="row 29 of the activation"):
        linear(x)


@pytest.mark.parametrize("text", ["float", "npu:w8a8-per-channel"])
def test_wrong_shapes_are_refused(kernels: KernelLibrary, text: str) -> None:
    linear = make_backend(text, kernels=kernels).linear(float_tensor(np.ones((6, 32), np.float32)))
    good = np.ones((2, 32), np.float32)
    for x in (good[0], good[:, :31], good.astype(np.float64), np.asfortranarray(good), good[:, ::2]):
        with pytest.raises(ValueError, match=r"takes C-contiguous float32 \[M, 32\]"):
            linear(x)  # type: ignore[arg-type]
    for out in (np.empty((2, 5), np.float32), np.empty((2, 6), np.float64), np.empty((6, 2), np.float32).T):
        with pytest.raises(ValueError, match=r"gives C-contiguous float32 \[2, 6\]"):
            linear(good, out)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", BACKENDS)
def test_no_rows_give_no_rows(kernels: KernelLibrary, text: str) -> None:
    for library in (kernels, None):
        linear = make_backend(text, kernels=library).linear(float_tensor(np.ones((6, 32), np.float32)))
        assert linear(np.empty((0, 32), np.float32)).shape == (0, 6)


def test_the_environment_chooses_path_or_numpy(monkeypatch: pytest.MonkeyPatch, kernels: KernelLibrary) -> None:
    build = kernels.file.parents[1]
    monkeypatch.setenv("RKNPU_KIT_KERNELS", "numpy")
    assert load_library(build) is None
    assert "asks to do without" in why_absent(build)
    monkeypatch.setenv("RKNPU_KIT_KERNELS", "c")
    forced = load_library(build)
    assert forced is not None
    assert forced.path == "c"
    monkeypatch.setenv("RKNPU_KIT_KERNELS", "sse9")
    with pytest.raises(KernelLibraryError, match="no kernel path 'sse9'"):
        load_library(build)
    monkeypatch.delenv("RKNPU_KIT_KERNELS")
    assert why_absent(build) == ""
    kernels.use_path("")


def test_an_absent_or_foreign_library_costs_speed_only(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kernels: KernelLibrary
) -> None:
    assert load_library(tmp_path) is None
    assert "run 'make build'" in why_absent(tmp_path)
    file = tmp_path / "engine" / "libengine_kernels.so"
    file.parent.mkdir()
    file.write_bytes(b"no library")
    assert load_library(tmp_path) is None
    assert "cannot be loaded" in why_absent(tmp_path)
    monkeypatch.setattr(library_module, "ABI", 999)
    assert load_library(kernels.file.parents[1]) is None
    assert "of another version" in why_absent(kernels.file.parents[1])
