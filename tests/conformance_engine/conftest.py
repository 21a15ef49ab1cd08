# SPDX-License-Identifier: Apache-2.0
"""The C kernels and the mock, built: the suite's worker takes them from the checkout."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.mock.mock_client import BUILD, ROOT


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    if "RKNPU_TEST_BUILD" in os.environ:
        return
    for part in ("reference_engine/kernels", "c_probes/mock"):
        command = ["make", "-s", "-C", str(ROOT / part), f"BUILD={BUILD}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
