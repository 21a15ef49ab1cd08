# SPDX-License-Identifier: Apache-2.0
"""Which kernel path runs, and that a wish that cannot be met is said."""

from __future__ import annotations

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.gemm.kernels import PATHS, Kernels
from tests.kernels.gemm_driver import run_driver

X86 = platform.machine() == "x86_64"
on_x86 = pytest.mark.skipif(not X86, reason="x86-64 paths")


def driver_path(command: list[str], kernel: str | None = None) -> str:
    """What the driver says about its path, with RKNN_MOCK_KERNEL as given."""
    done = run_driver(command, "path", env={} if kernel is None else {"RKNN_MOCK_KERNEL": kernel})
    assert done.returncode == 0
    return done.stdout.strip()


def test_the_automatic_path_is_the_first_that_can_be_forced(kernels: Kernels, native_driver: Path) -> None:
    best = next(name for name in PATHS if kernels.force(name))
    kernels.force(None)
    assert kernels.path() == best == driver_path([str(native_driver)])
    assert kernels.error() is None


def test_the_environment_chooses_a_path(kernels: Kernels, native_driver: Path) -> None:
    runnable = [name for name in PATHS if kernels.force(name)]
    kernels.force(None)
    assert runnable
    for name in runnable:
        assert driver_path([str(native_driver)], name) == name


def test_an_empty_environment_variable_means_automatic(native_driver: Path) -> None:
    assert driver_path([str(native_driver)], "") == driver_path([str(native_driver)])


def test_an_unknown_name_is_an_error_that_lists_the_valid_ones(native_driver: Path) -> None:
    said = driver_path([str(native_driver)], "avx9000")
    assert said.startswith("error: RKNN_MOCK_KERNEL=avx9000: no such kernel path")
    assert said.endswith(" c")


def test_a_name_of_great_length_is_cut_not_overrun(native_driver: Path) -> None:
    assert driver_path([str(native_driver)], "x" * 5000).startswith("error: RKNN_MOCK_KERNEL=xxx")


@on_x86
def test_a_path_of_another_cpu_is_an_error_not_a_fallback(native_driver: Path) -> None:
    assert "no such kernel path in this build" in driver_path([str(native_driver)], "neon-dot")


def test_with_an_unusable_name_the_product_is_refused(native_driver: Path) -> None:
    done = run_driver([str(native_driver)], "vectors", env={"RKNN_MOCK_KERNEL": "none"})
    assert (done.returncode, done.stdout) == (1, "")


def test_forcing_an_unknown_path_changes_nothing(kernels: Kernels) -> None:
    assert kernels.force("c")
    assert not kernels.force("avx9000")
    assert kernels.path() == "c"
    assert kernels.force(None)


@on_x86
@pytest.mark.parametrize(("cpu", "expected"), [("Nehalem", "c"), ("Haswell", "avx2")])
def test_an_older_x86_cpu_gets_the_path_it_can_run(native_driver: Path, vectors: str, cpu: str, expected: str) -> None:
    qemu = shutil.which("qemu-x86_64")
    if qemu is None:
        pytest.skip("qemu-x86_64 (package qemu-user) is not installed")
    command = [qemu, "-cpu", cpu, str(native_driver)]
    assert driver_path(command) == expected
    assert run_driver(command, "vectors").stdout == vectors
    wish = run_driver(command, "vectors", "avx512-vnni")
    assert wish.returncode == 1
    assert "lacks that path" in wish.stderr


@on_x86
def test_avx_vnni_is_assembled_in_its_own_encoding(library: Path) -> None:
    objdump = shutil.which("objdump")
    if objdump is None:
        pytest.skip("objdump (package binutils) is not installed")
    code = subprocess.run([objdump, "-d", str(library)], capture_output=True, text=True, check=True).stdout
    lines = [line for line in code.splitlines() if "vpdpbusd" in line]
    assert any("{vex}" in line and "%ymm" in line for line in lines)
    assert all("{vex}" in line or "%zmm" in line for line in lines)
