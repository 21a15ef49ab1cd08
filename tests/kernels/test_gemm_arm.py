# SPDX-License-Identifier: Apache-2.0
"""The same bits on aarch64 with and without the dot product extension, and on 32-bit Arm, under qemu."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kernels.gemm_driver import build_driver, run_driver

pytestmark = pytest.mark.arm


@dataclass(frozen=True)
class Target:
    """A cross compiler with its libraries, and a CPU of qemu-user with the paths it can run, best first."""

    compiler: str
    qemu: str
    cpu: str
    paths: tuple[str, ...]
    root: str


TARGETS = {
    "cortex-a76 of RK3588": Target(
        "aarch64-linux-gnu-gcc", "qemu-aarch64", "cortex-a76", ("neon-dot", "neon", "c"), "/usr/aarch64-linux-gnu"
    ),
    "cortex-a72 of RK3576": Target(
        "aarch64-linux-gnu-gcc", "qemu-aarch64", "cortex-a72", ("neon", "c"), "/usr/aarch64-linux-gnu"
    ),
    "cortex-a53 of RK3562": Target(
        "aarch64-linux-gnu-gcc", "qemu-aarch64", "cortex-a53", ("neon", "c"), "/usr/aarch64-linux-gnu"
    ),
    "32-bit Arm": Target("arm-linux-gnueabihf-gcc", "qemu-arm", "cortex-a7", ("c",), "/usr/arm-linux-gnueabihf"),
}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> Target:
    """Each target whose cross compiler and qemu are here; the others skip and say so."""
    found = TARGETS[request.param]
    for tool in (found.compiler, found.qemu):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    return found


def run(target: Target, builds: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the driver of that target, built once, under qemu."""
    driver = build_driver(builds / f"driver-{target.compiler}", (target.compiler,))
    return run_driver([target.qemu, "-cpu", target.cpu, "-L", target.root, str(driver)], *arguments)


def test_the_best_path_of_the_cpu_is_chosen(target: Target, builds: Path) -> None:
    assert run(target, builds, "path").stdout.strip() == target.paths[0]


def test_every_path_gives_the_bits_of_the_oracle(target: Target, builds: Path, vectors: str) -> None:
    for name in target.paths:
        assert run(target, builds, "vectors", name).stdout == vectors, name


def test_a_path_the_cpu_lacks_is_refused_before_an_illegal_instruction(target: Target, builds: Path) -> None:
    for name in {"neon-dot", "neon", "c"} - set(target.paths):
        done = run(target, builds, "vectors", name)
        assert done.returncode == 1
        assert "lacks that path" in done.stderr


def test_the_worker_pool_holds_up(target: Target, builds: Path) -> None:
    assert run(target, builds, "race").returncode == 0
