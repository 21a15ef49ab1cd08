# SPDX-License-Identifier: Apache-2.0
"""The same hashes on aarch64 with and without the dot product extension, and on 32-bit Arm, under qemu."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.kernels.test_gemm_arm import TARGETS
from tests.linear.kernel_driver import build_driver, run_driver

pytestmark = pytest.mark.arm


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("linear_arm")


@pytest.fixture(scope="module")
def hashes(builds: Path) -> str:
    done = run_driver([str(build_driver(builds / "native"))], "1")
    assert done.returncode == 0
    return done.stdout


@pytest.mark.parametrize("name", TARGETS)
def test_every_path_prints_the_hashes_of_this_machine(builds: Path, hashes: str, name: str) -> None:
    target = TARGETS[name]
    for tool in (target.compiler, target.qemu):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    driver = build_driver(builds / target.compiler, target.compiler)
    command = [target.qemu, "-cpu", target.cpu, "-L", target.root, str(driver)]
    assert run_driver(command, "1", "paths").stdout.strip() == target.paths[0]
    for path in target.paths:
        done = run_driver(command, "2", path)
        assert done.stderr == ""
        assert done.stdout == hashes, path
