# SPDX-License-Identifier: Apache-2.0
"""Builds of the int8 kernels for their tests."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.gemm.kernels import Kernels, build_library
from tests.kernels.gemm_driver import build_driver
from tests.kernels.gemm_oracle import driver_vectors

HERE = {"x86_64": ("avx512-vnni", "avx-vnni", "avx2", "c"), "aarch64": ("neon-dot", "neon", "c")}


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of this run's builds."""
    return tmp_path_factory.mktemp("gemm")


@pytest.fixture(scope="session")
def library(builds: Path) -> Path:
    """The kernels as a shared library."""
    return build_library(builds / "libgemm_s8.so")


@pytest.fixture(scope="session")
def kernels(library: Path) -> Kernels:
    """The kernels, automatic path."""
    return Kernels(library)


@pytest.fixture(scope="session")
def native_driver(builds: Path) -> Path:
    """The test driver for this machine."""
    return build_driver(builds / "driver")


@pytest.fixture(scope="session")
def vectors() -> str:
    """What every path must print for the fixed grid of shapes."""
    return driver_vectors()


@pytest.fixture(scope="session")
def avx_vnni_twin(builds: Path) -> Kernels:
    """The AVX-VNNI code on the 256-bit instruction of AVX512-VNNI, which differs in encoding only."""
    return Kernels(build_library(builds / "twin.so", flags=("-DGEMM_AVXVNNI_FROM_AVX512",)))


@pytest.fixture(params=HERE.get(platform.machine(), ("c",)))
def path(request: pytest.FixtureRequest, kernels: Kernels) -> Iterator[Kernels]:
    """The kernels on each path this CPU can run; the others skip and say so."""
    name, chosen = str(request.param), kernels
    if name == "avx-vnni" and not kernels.force(name):
        chosen = request.getfixturevalue("avx_vnni_twin")
    if not chosen.force(name):
        pytest.skip(f"this CPU lacks the {name} path")
    yield chosen
    chosen.force(None)
