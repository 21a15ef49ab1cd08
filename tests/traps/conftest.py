# SPDX-License-Identifier: Apache-2.0
"""The traps, written once for all tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from conformance.traps import Trap, trap_names, write_trap
from tests.device.conftest import device, kernels, mock_folder

__all__ = ["device", "kernels", "mock_folder"]


@pytest.fixture(scope="session")
def trap_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("traps")


@pytest.fixture(scope="session")
def traps(trap_folder: Path) -> Mapping[str, Trap]:
    """Every trap by its name."""
    return {name: write_trap(name, trap_folder) for name in trap_names()}
