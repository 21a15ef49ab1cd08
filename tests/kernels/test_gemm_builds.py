# SPDX-License-Identifier: Apache-2.0
"""The kernels outside Python: sanitizers, fork, exhausted memory, dlclose, a second compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from gemm_driver import build_driver, run_driver

from bench.gemm.kernels import PATHS, Kernels

SANITIZERS = {
    "address-undefined": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0"),
    "thread": ("-fsanitize=thread", "-O1"),
}
# ThreadSanitizer refuses threads in a forked child unless told; that the child is sound is what is tested here.
OPTIONS = {"TSAN_OPTIONS": "die_after_fork=0 halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=1"}


def test_fork_among_working_threads_leaves_parent_and_child_sound(native_driver: Path) -> None:
    assert run_driver([str(native_driver)], "fork").returncode == 0


def test_threads_that_pack_multiply_and_free_at_once_stay_exact(native_driver: Path) -> None:
    assert run_driver([str(native_driver)], "race").returncode == 0


def test_exhausted_memory_costs_the_workers_then_is_reported(native_driver: Path) -> None:
    done = run_driver([str(native_driver)], "tight")
    assert done.stdout == "no worker: 0, exact 1; no memory: -1, untouched 1; again: 0, exact 1\n"


def test_the_library_can_be_unloaded_with_its_workers(native_driver: Path, library: Path) -> None:
    assert run_driver([str(native_driver)], "reload", str(library)).returncode == 0


@pytest.mark.parametrize("kind", SANITIZERS)
def test_sanitizers_find_nothing(builds: Path, kernels: Kernels, vectors: str, kind: str) -> None:
    cc = ("clang",) if shutil.which("clang") else ("gcc",)
    driver = build_driver(builds / f"driver-{kind}", cc, ("-g", *SANITIZERS[kind]))
    setarch = shutil.which("setarch")  # some kernels spread addresses wider than older ThreadSanitizers allow
    command = [setarch, "-R", str(driver)] if setarch and kind == "thread" else [str(driver)]
    for name in [name for name in PATHS if kernels.force(name)]:
        done = run_driver(command, "vectors", name, env=OPTIONS)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", vectors), name
    kernels.force(None)
    for mode in ("race", "fork"):
        done = run_driver(command, mode, env=OPTIONS)
        assert (done.returncode, done.stderr) == (0, ""), mode


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_either_compiler_builds_without_a_warning_and_gives_the_same_bits(builds: Path, vectors: str, cc: str) -> None:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    assert run_driver([str(build_driver(builds / f"driver-{cc}", (cc,)))], "vectors").stdout == vectors
