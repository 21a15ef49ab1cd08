# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the GGUF tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    """Writes bytes to a file and returns its path."""

    def write(raw: bytes, name: str = "model.gguf") -> Path:
        path = tmp_path / name
        path.write_bytes(raw)
        return path

    return write
