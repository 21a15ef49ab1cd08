# SPDX-License-Identifier: Apache-2.0
"""The kernels outside Python: sanitizers, fork, exhausted memory, dlclose, a second compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.gemm.kernels import PATHS, SOURCES, Kernels
from tests.kernels.gemm_driver import build_driver, run_driver

SANITIZERS = {
    "address-undefined": ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-O0"),
    "thread": ("-fsanitize=thread", "-O1"),
}
# No fork under a sanitizer: the locks of their runtimes stay held in the child of a fork among threads that allocate,
# so that a sound child hangs (clang 14: ThreadSanitizer in MetaMap::AllocBlock, AddressSanitizer in its allocator;
# compiler-rt tsan_rtl.cpp says so at ForkChildAfter, llvm-project pull request 96600 locks some of them since).
OPTIONS = {"TSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "detect_leaks=1"}
COMPILER = ("clang",) if shutil.which("clang") else ("gcc",)


def launch(driver: Path, kind: str) -> list[str]:
    """The command that runs a sanitized driver; some kernels spread addresses wider than ThreadSanitizer allows."""
    setarch = shutil.which("setarch")
    return [setarch, "-R", str(driver)] if setarch and kind == "thread" else [str(driver)]


def test_fork_among_working_threads_leaves_parent_and_child_sound(native_driver: Path) -> None:
    done = run_driver([str(native_driver)], "fork")
    assert (done.returncode, done.stderr) == (0, "")


def test_threads_that_pack_multiply_and_free_at_once_stay_exact(native_driver: Path) -> None:
    assert run_driver([str(native_driver)], "race").returncode == 0


def test_exhausted_memory_costs_the_workers_then_is_reported(native_driver: Path) -> None:
    done = run_driver([str(native_driver)], "tight")
    assert done.stdout == "no worker: 0, exact 1; no memory: -1, untouched 1; again: 0, exact 1\n"


def test_the_library_can_be_unloaded_with_its_workers(native_driver: Path, library: Path) -> None:
    assert run_driver([str(native_driver)], "reload", str(library)).returncode == 0


@pytest.mark.parametrize("kind", SANITIZERS)
def test_sanitizers_find_nothing(builds: Path, kernels: Kernels, vectors: str, kind: str) -> None:
    driver = build_driver(builds / f"driver-{kind}", COMPILER, ("-g", *SANITIZERS[kind]))
    command = launch(driver, kind)
    for name in [name for name in PATHS if kernels.force(name)]:
        done = run_driver(command, "vectors", name, env=OPTIONS)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", vectors), name
    kernels.force(None)
    done = run_driver(command, "race", env=OPTIONS)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_either_compiler_builds_without_a_warning_and_gives_the_same_bits(builds: Path, vectors: str, cc: str) -> None:
    if not shutil.which(cc):
        pytest.skip(f"{cc} is not installed")
    assert run_driver([str(build_driver(builds / f"driver-{cc}", (cc,)))], "vectors").stdout == vectors


@pytest.mark.parametrize(
    ("kind", "file", "old", "new", "mode"),
    [
        (
            "address-undefined",
            "gemm_pack.c",
            "K - k < GEMM_QUAD ? K - k : GEMM_QUAD",
            "k > K ? 0 : GEMM_QUAD",
            "vectors",
        ),
        ("address-undefined", "gemm_pack.c", "sum[n] += (uint32_t)row[n]", "sum[n] += 1u << (40 + row[n])", "vectors"),
        ("thread", "gemm_pool.c", "pthread_mutex_lock(&pool.lock);\n    if (!pool.stop)", "if (!pool.stop)", "race"),
    ],
)
def test_a_fault_put_into_the_source_is_seen_by_its_sanitizer(
    *, tmp_path: Path, kind: str, file: str, old: str, new: str, mode: str
) -> None:
    sources = tmp_path / "kernels"
    shutil.copytree(SOURCES, sources)
    text = (sources / file).read_text(encoding="utf-8")
    assert old in text
    (sources / file).write_text(text.replace(old, new), encoding="utf-8")
    driver = build_driver(tmp_path / "driver", COMPILER, SANITIZERS[kind], sources)
    done = run_driver(launch(driver, kind), mode, env=OPTIONS)
    assert done.returncode != 0
    assert "Sanitizer" in done.stderr or "runtime error" in done.stderr
