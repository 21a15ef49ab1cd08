# SPDX-License-Identifier: Apache-2.0
"""The mock's libraries, built once per session through the Makefile."""

from __future__ import annotations

import os
import resource
import subprocess

import pytest

from tests.mock.mock_client import BUILD, ROOT

DESCRIPTORS = 4096


@pytest.fixture(scope="session", autouse=True)
def room_for_buffers() -> None:
    """Each buffer of the mock is a descriptor, as on the board, and many of these tests keep theirs to the end."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < DESCRIPTORS:
        most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


@pytest.fixture(scope="session", autouse=True)
def built_mock() -> None:
    if "RKNPU_TEST_BUILD" in os.environ:
        return  # built by whoever set it, with other flags
    command = ["make", "-s", "-C", str(ROOT / "c_probes" / "mock"), f"BUILD={BUILD}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
