# SPDX-License-Identifier: Apache-2.0
"""The probes, the stand-in libraries and the mock, built once per session."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.c_probes.probe_runs import BUILD, HERE, ROOT, SANITIZE, Probes, make


@pytest.fixture(scope="session")
def probes() -> Probes:
    make("c_probes/src", BUILD, "all")
    return Probes(BUILD)


@pytest.fixture(scope="session")
def sanitized_probes() -> Probes:
    build = BUILD / "sanitized"
    make("c_probes/src", build, "all", "parts", CFLAGS_EXTRA=SANITIZE)
    return Probes(build)


@pytest.fixture(scope="session")
def parts_library() -> Path:
    """The parts of the probes as a shared object; RKNPU_TEST_PARTS names another build of it."""
    chosen = os.environ.get("RKNPU_TEST_PARTS")
    if chosen:
        return Path(chosen)
    make("c_probes/src", BUILD, "parts")
    return BUILD / "lib" / "libprobeparts.so"


@pytest.fixture(scope="session")
def mock_library() -> Path:
    make("c_probes/mock", BUILD)
    return BUILD / "mock" / "librknnrt.so"


@pytest.fixture(scope="session")
def stand_in() -> Callable[..., Path]:
    """``stand_in("C_ZERO")``: the tiny library with that fault, compiled when first asked for."""

    @cache
    def compiled(fault: str = "NONE", source: str = "stand_in.c") -> Path:
        folder = BUILD / "stand-ins"
        folder.mkdir(parents=True, exist_ok=True)
        target = folder / f"{source.removesuffix('.c')}-{fault}.so"
        compiler = os.environ.get("CC", "cc")
        flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-fvisibility=hidden"]
        command = [compiler, *flags, f"-DFAULT=FAULT_{fault}", f"-I{ROOT / 'c_probes' / 'include'}"]
        command += [str(HERE / "stand_ins" / source), "-o", str(target), "-lm"]
        subprocess.run(command, check=True)
        return target

    return compiled
