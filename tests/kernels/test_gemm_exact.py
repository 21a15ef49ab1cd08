# SPDX-License-Identifier: Apache-2.0
"""Every kernel path gives the bits of numpy int64 modulo 2^32."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from bench.gemm.kernels import PATHS, SOURCES, Kernels, build_library
from tests.kernels.gemm_oracle import PAD, SENTINEL, product

FILLS = ("random", "lowest", "highest", "corners")


def matrix(rng: np.random.Generator, rows: int, cols: int, how: str) -> NDArray[np.int8]:
    """An int8 matrix: all of the range, all -128, all 127, or the two mixed."""
    if how == "random":
        return rng.integers(-128, 128, (rows, cols), dtype=np.int8)
    if how == "corners":
        return rng.choice(np.array([-128, 127], np.int8), (rows, cols))
    return np.full((rows, cols), -128 if how == "lowest" else 127, np.int8)


def disagreement(
    kernels: Kernels, M: int, K: int, N: int, *, threads: int = 1, how: str = "random", seed: int = 0, gap: int = PAD
) -> str:
    """Multiply in a C with sentinels around it and compare; empty when all is right."""
    rng = np.random.default_rng(seed)
    a, b = matrix(rng, M, K + gap, how)[:, :K], matrix(rng, K, N, how)
    c = np.full((M, N + gap), SENTINEL, np.int32)
    packed = kernels.pack(b)
    rc = kernels.multiply(a, packed, c, threads)
    packed.free()
    if rc:
        return f"returned {rc}"
    if (c[:, N:] != SENTINEL).any():
        return "wrote past column N"
    wrong = np.argwhere(c[:, :N] != product(a, b))
    return f"{len(wrong)} of {M * N} elements wrong, first at {wrong[0].tolist()}" if len(wrong) else ""


@settings(max_examples=80, deadline=None)  # the fixture only names a path
@given(
    M=st.integers(1, 40),
    K=st.integers(1, 300),
    N=st.integers(1, 130),
    threads=st.integers(0, 4),
    how=st.sampled_from(FILLS),
    seed=st.integers(0, 2**32 - 1),
    gap=st.integers(0, 5),
)
def test_any_shape_is_exact(
    *, path: Kernels, M: int, K: int, N: int, threads: int, how: str, seed: int, gap: int
) -> None:
    assert disagreement(path, M, K, N, threads=threads, how=how, seed=seed, gap=gap) == ""


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(
    ("M", "K", "N"),
    [(1, 4096, 500), (1601, 40, 20), (30, 17000, 33), (13, 8193, 48), (770, 33, 17), (5, 70, 2049)],
    ids=["one row", "three row blocks", "three K spans", "K span and a quad", "two row blocks", "many columns"],
)
def test_shapes_that_cross_a_block_are_exact(*, path: Kernels, M: int, K: int, N: int, threads: int) -> None:
    assert disagreement(path, M, K, N, threads=threads) == ""


@pytest.mark.parametrize("K", [131071, 131072, 262144, 262147])
def test_sums_wrap_modulo_2_to_the_32(path: Kernels, K: int) -> None:
    assert disagreement(path, 2, K, 17, threads=2, how="lowest") == ""
    c = np.zeros((1, 1), np.int32)
    ones = np.full((1, K), -128, np.int8)
    packed = path.pack(ones.reshape(K, 1))
    assert path.multiply(ones, packed, c, 1) == 0
    assert int(c[0, 0]) == (K * 16384 + 2**31) % 2**32 - 2**31


def test_empty_products_touch_nothing_but_their_own_zeros(path: Kernels) -> None:
    assert disagreement(path, 3, 0, 20) == ""
    assert disagreement(path, 0, 5, 20) == ""
    assert disagreement(path, 3, 5, 0) == ""


def test_one_packed_b_serves_every_path(kernels: Kernels) -> None:
    rng = np.random.default_rng(3)
    a, b = matrix(rng, 9, 333, "random"), matrix(rng, 333, 77, "random")
    packed, seen = kernels.pack(b), 0
    for name in PATHS:
        if kernels.force(name):
            c = np.zeros((9, 77), np.int32)
            assert kernels.multiply(a, packed, c, 2) == 0
            assert (c == product(a, b)).all(), name
            seen += 1
    assert seen >= 1


def test_contexts_of_many_threads_do_not_disturb_each_other(path: Kernels) -> None:
    bad: list[str] = []

    def work(index: int) -> None:
        for i in range(12):
            bad.append(disagreement(path, 1 + (index * 7 + i) % 50, 400 + i, 90, threads=1 + i % 4, seed=index))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(bad) == 72
    assert not any(bad)


def test_a_b_too_large_for_memory_is_refused(kernels: Kernels) -> None:
    assert not kernels.can_pack(2**62, 2**62)
    assert not kernels.can_pack(2**40, 2**20)


FAULTS = (
    ("avx512-vnni", "gemm_pack.c", "0u - 128u *", "0u - 127u *"),
    ("avx512-vnni", "gemm_avx512vnni.c", "q < quads", "q + 1 < quads"),
    ("avx2", "gemm_avx2.c", "_mm256_srai_epi16(y, 8)", "_mm256_srli_epi16(y, 8)"),
    ("avx2", "gemm_pack.c", "out[1] = v[2], out[2] = v[1]", "out[1] = v[1], out[2] = v[2]"),
    ("c", "gemm_s8.c", "real * sizeof *c);\n}", "(real - 1) * sizeof *c);\n}"),
    ("c", "gemm_s8.c", "init = NULL;", "(void)init;"),
    ("c", "gemm_c.c", "n < GEMM_PANEL; n++)\n            c[n]", "n < GEMM_PANEL; n++)\n            (c - r * ldc)[n]"),
)


@pytest.mark.parametrize(("name", "file", "old", "new"), FAULTS)
def test_a_fault_put_into_the_source_is_noticed(tmp_path: Path, name: str, file: str, old: str, new: str) -> None:
    sources = tmp_path / "kernels"
    shutil.copytree(SOURCES, sources)
    text = (sources / file).read_text(encoding="utf-8")
    assert old in text
    (sources / file).write_text(text.replace(old, new), encoding="utf-8")
    faulty = Kernels(build_library(tmp_path / "faulty.so", flags=("-O0",), sources=sources))
    if not faulty.force(name):
        pytest.skip(f"this CPU lacks the {name} path")
    assert disagreement(faulty, 5, 9001, 37) != ""
