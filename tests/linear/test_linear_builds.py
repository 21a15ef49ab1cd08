# SPDX-License-Identifier: Apache-2.0
"""The kernels outside Python: every path prints the same hashes; sanitizers find nothing, and find what is put in."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from reference_engine.kernels.library import KernelLibrary
from tests.linear.kernel_driver import build_driver, copy_kernels, fault_in, run_driver

SANITIZED = "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
OPTIONS = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("linear")


@pytest.fixture(scope="session")
def copy(builds: Path) -> Path:
    """Kernels to put faults into, one after the other: only what a fault changes is built again."""
    return copy_kernels(builds)


@pytest.fixture(scope="session")
def hashes(builds: Path) -> str:
    """What the driver prints on the best path with one thread."""
    done = run_driver([str(build_driver(builds / "native"))], "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(set(done.stdout.splitlines())) == 108
    return done.stdout


def test_every_path_and_number_of_threads_prints_the_same_hashes(
    builds: Path, hashes: str, kernels: KernelLibrary, paths: list[str]
) -> None:
    driver = build_driver(builds / "native")
    for path in paths:
        for threads in ("1", "3"):
            assert run_driver([str(driver)], threads, path).stdout == hashes, (path, threads)


def test_a_path_that_the_cpu_lacks_is_refused(builds: Path, paths: list[str]) -> None:
    for path in {"avx512-vnni", "avx-vnni", "avx2", "neon", "neon-dot", "no"} - set(paths):
        assert run_driver([str(build_driver(builds / "native"))], "1", path).returncode == 1


def test_address_and_undefined_behaviour_sanitizers_find_nothing(builds: Path, hashes: str, paths: list[str]) -> None:
    driver = build_driver(builds / "asan", flags=SANITIZED)
    for path in paths:
        done = run_driver([str(driver)], "3", path, env=OPTIONS)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == hashes


def test_the_other_compiler_gives_the_same_hashes(builds: Path, hashes: str) -> None:
    if not shutil.which("clang"):
        pytest.skip("clang is not installed")
    assert run_driver([str(build_driver(builds / "clang", "clang"))], "2").stdout == hashes


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("linear_feed.c", "b->K % GEMM_QUAD);\n", "GEMM_QUAD * 2);\n"),
        ("linear_prepare.c", "(ek_row_bytes(p, s) * (size_t)M + 63) / 64 * 64", "ek_row_bytes(p, s) * (size_t)M / 2"),
    ],
)
def test_a_fault_put_into_the_source_is_seen(copy: Path, builds: Path, file: str, old: str, new: str) -> None:
    """By the address sanitizer."""
    with fault_in(copy, file, old, new):
        flags = "-O0 -g -fsanitize=address"
        driver = build_driver(builds / "faults", flags=flags, kernels=copy, changed=True)
        done = run_driver([str(driver)], "1", "c", env=OPTIONS)
    assert done.returncode != 0
    assert "AddressSanitizer" in done.stderr
