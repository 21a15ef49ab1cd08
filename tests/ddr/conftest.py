# SPDX-License-Identifier: Apache-2.0
"""The CPU probes, built once per session in a folder of their own; also with sanitizers, and with faults in
them."""

from __future__ import annotations

import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "c_probes" / "src"
BUILD = Path(os.environ.get("RKNPU_TEST_BUILD", ROOT / "build")) / "tests-ddr"


def make(build: Path, *targets: str, **variables: str) -> None:
    command = ["make", "-s", "-C", str(SOURCES), f"BUILD={build}", *targets]
    done = subprocess.run(
        [*command, *(f"{name}={value}" for name, value in variables.items())],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


Build = Callable[..., Path]


@pytest.fixture(scope="session")
def build() -> Build:
    """``build("name", CFLAGS_EXTRA="...")``: the folder of such a build, made when first asked for."""

    @cache
    def built(name: str = "plain", *targets: str, **variables: str) -> Path:
        compiler = variables.get("CC", "cc")
        if not shutil.which(compiler):
            pytest.skip(f"{compiler} is not installed")
        # make does not see that flags changed: other flags, another folder
        folder = BUILD / f"{name}-{zlib.crc32(repr(variables).encode()):08x}"
        chosen = targets or (f"{folder}/bin/ddr_stream", f"{folder}/bin/cpu_rate", "cpu_parts")
        make(folder, *chosen, **variables)
        return folder

    return built
