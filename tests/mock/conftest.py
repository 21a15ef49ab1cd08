# SPDX-License-Identifier: Apache-2.0
"""The mock's libraries, built once per session through the Makefile."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.mock.mock_client import BUILD, ROOT


@pytest.fixture(scope="session", autouse=True)
def built_mock() -> None:
    if "RKNPU_TEST_BUILD" in os.environ:
        return  # built by whoever set it, with other flags
    command = ["make", "-s", "-C", str(ROOT / "c_probes" / "mock"), f"BUILD={BUILD}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
