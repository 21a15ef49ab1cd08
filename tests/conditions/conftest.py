# SPDX-License-Identifier: Apache-2.0
"""The board that the tests of the sampler start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conditions.condition_roots import BOARD, SELF, FakeRoot


@pytest.fixture
def board(tmp_path: Path) -> FakeRoot:
    """An RK3588 board at its full clocks, idle but for the process that measures."""
    root = FakeRoot(tmp_path / "root")
    for name, text in BOARD.items():
        root.set(name, text)
    root.busy(1000)
    root.process(SELF, 1, (100, 20, 0, 0))
    root.process(1, 0, (500, 100, 0, 0), name="systemd")
    return root
