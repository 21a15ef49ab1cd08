# SPDX-License-Identifier: Apache-2.0
"""The built kernels, and each CPU path of this machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_engine.kernels.library import KernelLibrary, load_library
from tests.mock.mock_client import BUILD, ROOT

PATHS = ("avx512-vnni", "avx-vnni", "avx2", "neon-dot", "neon", "c")


@pytest.fixture(scope="session")
def kernels() -> KernelLibrary:
    """The engine's C kernels, built, on the best path."""
    if "RKNPU_TEST_BUILD" not in os.environ:
        command = ["make", "-s", "-C", str(ROOT / "reference_engine" / "kernels"), f"BUILD={BUILD}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    library = load_library(Path(BUILD))
    assert library is not None
    return library


@pytest.fixture
def paths(kernels: KernelLibrary) -> Iterator[list[str]]:
    """The paths this CPU has; a test chooses with ``kernels.use_path``, and the best one is in use afterwards."""
    found = [name for name in PATHS if kernels.use_path(name)]
    assert "c" in found
    kernels.use_path("")
    yield found
    kernels.use_path("")
