# SPDX-License-Identifier: Apache-2.0
"""The mock, and runs of the suite as a user starts them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from c_probes import mock

ROOT = Path(__file__).resolve().parents[2]

Suite = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def mock_library() -> Path:
    try:
        return mock.library_path()
    except mock.MockNotBuilt as error:
        pytest.skip(str(error))


@pytest.fixture
def suite(tmp_path: Path, mock_library: Path) -> Suite:
    """``suite("-k", "int8", faults="c-zero")``: pytest conformance in a process of its own."""

    def run(*arguments: str, faults: str = "", persona: str = "rk3588") -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "RKNN_MOCK_PERSONA": persona, "RKNPU_KIT_LOCK": str(tmp_path / "lock")}
        env.pop("RKNN_MOCK_FAULTS", None)
        if faults:
            env["RKNN_MOCK_FAULTS"] = faults
        command = [sys.executable, "-m", "pytest", "conformance", "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=300, check=False)

    return run
