# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the board tests, and the table of boards and scenarios at the end of the run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.board.table import Known, remembering

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Known:
    """Facts and findings of a tree, built once for the whole run."""
    return remembering(tmp_path_factory.mktemp("trees"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of boards and scenarios, as it stands in the tree and as the tests have just checked it."""
    ran = [report for reports in terminalreporter.stats.values() for report in reports]
    if (HERE / "TABLE.md").is_file() and any(
        "test_board_table.py" in str(getattr(report, "nodeid", "")) for report in ran
    ):
        terminalreporter.section("boards and scenarios")
        terminalreporter.write((HERE / "TABLE.md").read_text(encoding="utf-8"))
