# SPDX-License-Identifier: Apache-2.0
"""A built mock, a lock of the test's own, and back ends that are closed whatever happens."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reference_engine.backends.device import DeviceBackend, make_device_backend
from reference_engine.kernels.library import KernelLibrary, load_library
from tests.mock.mock_client import BUILD, ROOT

MakeDevice = Callable[..., DeviceBackend]


@pytest.fixture(scope="session")
def mock_folder() -> Path:
    """The folder with ``librknnrt.so`` and one folder for each older version."""
    if "RKNPU_TEST_BUILD" not in os.environ:
        command = ["make", "-s", "-C", str(ROOT / "c_probes" / "mock"), f"BUILD={BUILD}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    return Path(BUILD) / "mock"


@pytest.fixture(scope="session")
def kernels() -> KernelLibrary:
    """The engine's C kernels, built."""
    if "RKNPU_TEST_BUILD" not in os.environ:
        command = ["make", "-s", "-C", str(ROOT / "reference_engine" / "kernels"), f"BUILD={BUILD}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    library = load_library(Path(BUILD))
    assert library is not None
    return library


@pytest.fixture
def device(tmp_path: Path, mock_folder: Path) -> Iterator[MakeDevice]:
    """``device(text, version="", kernels=None, **environment)`` makes a device back end on the mock."""
    opened: list[DeviceBackend] = []

    def make(text: str, version: str = "", kernels: KernelLibrary | None = None, **environment: str) -> DeviceBackend:
        if "library=" not in text:
            text = f"{text},library={mock_folder / version / 'librknnrt.so'}"
        env = {name: value for name, value in os.environ.items() if not name.startswith("RKNN_MOCK")}
        env |= {"RKNPU_KIT_LOCK": str(tmp_path / "lock"), **environment}
        opened.append(make_device_backend(text, kernels=kernels, threads=2, env=env))
        return opened[-1]

    yield make
    for backend in opened:
        backend.close()
