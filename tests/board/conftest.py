# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the board tests, and the table of boards and scenarios at the end of the run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from probes.facts import FactSheet, collect
from probes.system import System
from tests.board.tree import build

HERE = Path(__file__).resolve().parent
Look = Callable[..., FactSheet]


@pytest.fixture
def look(tmp_path: Path) -> Look:
    """Build a root from tables and collect its facts."""
    count = 0

    def build_and_collect(*tables: str) -> FactSheet:
        nonlocal count
        count += 1
        root = build(tmp_path / f"root{count}", *tables)
        return collect(System(root), lambda event: None)

    return build_and_collect


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of boards and scenarios, as it stands in the tree and as the tests have just checked it."""
    ran = [report for reports in terminalreporter.stats.values() for report in reports]
    if (HERE / "TABLE.md").is_file() and any(
        "test_board_table.py" in str(getattr(report, "nodeid", "")) for report in ran
    ):
        terminalreporter.section("boards and scenarios")
        terminalreporter.write((HERE / "TABLE.md").read_text(encoding="utf-8"))
