# SPDX-License-Identifier: Apache-2.0
"""Builds stand-in libraries once per session: one small C file, one fault chosen with -D."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
INCLUDE = HERE.parents[1] / "c_probes" / "include"

BuildLibrary = Callable[..., Path]


@pytest.fixture(scope="session")
def build_library(tmp_path_factory: pytest.TempPathFactory) -> BuildLibrary:
    """``build_library("CRASH_IN_CREATE", compiler="gcc")``: the path of ``librknnrt.so`` with that fault."""
    folder = tmp_path_factory.mktemp("stand_ins")
    made: dict[tuple[str, ...], Path] = {}

    def build(*defines: str, compiler: str = "gcc", source: Path = HERE / "stand_in.c") -> Path:
        key = (compiler, str(source), *defines)
        if key not in made:
            found = shutil.which(compiler)
            if found is None:
                pytest.skip(f"{compiler} is not installed")
            target = Path(tempfile.mkdtemp(dir=folder)) / "librknnrt.so"
            subprocess.run(
                [
                    found,
                    *("-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", "-Wl,-soname,librknnrt.so"),
                    *(f"-D{define}" for define in defines),
                    *("-I", str(INCLUDE), "-o", str(target), str(source)),
                ],
                check=True,
                timeout=120,
            )
            made[key] = target
        return made[key]

    return build
