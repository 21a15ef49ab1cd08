# SPDX-License-Identifier: Apache-2.0
"""The C driver: the same hashes by every path, compiler and number of threads; sanitizers; faults in the source."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.kernels.test_gemm_arm import TARGETS
from tests.linear.kernel_driver import KERNELS, build_driver, copy_kernels, fault_in, run_driver

SANITIZED = "-O0 -g -fsanitize=address,undefined -fno-sanitize-recover=all"
OPTIONS = {**os.environ, "ASAN_OPTIONS": "detect_leaks=1"}
PARTS = ("path", "pool", "math", "vector", "kv", "attention")


# What is optimised little builds in a fraction of the time; the library as it is used meets its twin elsewhere.
QUICK = "-O1"
FUSED = "-O1 -fexpensive-optimizations -ffp-contract=fast"


def driver(build: Path, cc: str = "cc", flags: str = QUICK, kernels: Path = KERNELS, *, changed: bool = False) -> str:
    source = Path(__file__).with_name("driver.c")
    return str(build_driver(build, cc, flags, kernels, parts=PARTS, source=source, changed=changed))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vector")


@pytest.fixture(scope="module")
def copy(builds: Path) -> Path:
    """Kernels to put faults into, one after the other: only what a fault changes is built again."""
    return copy_kernels(builds)


@pytest.fixture(scope="module")
def hashes(builds: Path) -> str:
    """What the driver prints on the best path with one thread."""
    done = run_driver([driver(builds / "native")], "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(done.stdout.splitlines()) == 5 * (14 + 5) + 2 + 18
    return done.stdout


def test_every_path_and_number_of_threads_prints_the_same_hashes(builds: Path, hashes: str, paths: list[str]) -> None:
    for path in paths:
        for threads in ("1", "3"):
            assert run_driver([driver(builds / "native")], threads, path).stdout == hashes, (path, threads)


def test_address_and_undefined_behaviour_sanitizers_find_nothing(builds: Path, hashes: str, paths: list[str]) -> None:
    sanitized = driver(builds / "asan", flags=SANITIZED)
    for path in paths:
        done = run_driver([sanitized], "3", path, env=OPTIONS)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout == hashes


def test_the_other_compiler_gives_the_same_hashes(builds: Path, hashes: str) -> None:
    if not shutil.which("clang"):
        pytest.skip("clang is not installed")
    assert run_driver([driver(builds / "clang", "clang")], "2").stdout == hashes


def test_contracted_products_and_sums_would_be_seen(builds: Path, hashes: str, paths: list[str]) -> None:
    if not {"avx2", "avx512-vnni", "neon"} & set(paths):
        pytest.skip("this CPU has no fused multiply-add")
    assert run_driver([driver(builds / "fused", flags=FUSED)], "1").stdout != hashes


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("attention_task.c", "position - job->window + 1 : 0", "position - job->window : 0"),
        ("kv_decode_lanes.c", "position / KV_TILE % tiles", "(position / KV_TILE + 1) % tiles"),
        (
            "attention_scores_lanes.c",
            "FOLD(fold_2, lane, 8)\nFOLD(fold_4, fold_2, 4)",
            "FOLD(fold_2, lane, 4)\nFOLD(fold_4, fold_2, 8)",
        ),
    ],
)
def test_a_fault_put_into_the_source_changes_a_hash(
    copy: Path, builds: Path, hashes: str, *, file: str, old: str, new: str
) -> None:
    with fault_in(copy, file, old, new):
        done = run_driver([driver(builds / "faults", flags="-O0", kernels=copy, changed=True)], "1", "c")
    assert done.returncode == 0
    assert done.stdout != hashes


@pytest.mark.arm
@pytest.mark.parametrize("name", TARGETS)
def test_every_path_of_an_arm_cpu_prints_the_hashes_of_this_machine(builds: Path, hashes: str, name: str) -> None:
    target = TARGETS[name]
    for tool in (target.compiler, target.qemu):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    command = [target.qemu, "-cpu", target.cpu, "-L", target.root, driver(builds / target.compiler, target.compiler)]
    assert run_driver(command, "1", "paths").stdout.strip() == target.paths[0]
    for path in target.paths:
        done = run_driver(command, "2", path)
        assert done.stderr == ""
        assert done.stdout == hashes, path
