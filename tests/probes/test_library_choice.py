# SPDX-License-Identifier: Apache-2.0
"""The mock stands in only where the machine is known to be no Rockchip board, and never in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from probes.library_choice import BoardView, Choice, choose_library, installed_library, mock_environment

GOOD_BOARD = BoardView(is_rockchip=True, stack="vendor-drm", device_accessible=True)
OTHER_MACHINE = BoardView(is_rockchip=False, stack="none", device_accessible=None)
INSTALLED = Path("/usr/lib/librknnrt.so")


def choose(
    tmp_path: Path,
    board: BoardView,
    *,
    named: Path | None = None,
    named_is_mock: bool = False,
    force_mock: bool = False,
    installed: Path | None = INSTALLED,
    installed_is_mock: bool = False,
    mock_built: bool = True,
) -> Choice:
    mock = tmp_path / "librknnrt.so"
    if mock_built:
        mock.touch()
    return choose_library(
        board,
        named=named,
        named_is_mock=named_is_mock,
        force_mock=force_mock,
        installed=installed,
        installed_is_mock=installed_is_mock,
        mock_library=mock,
        env={},
    )


def test_a_healthy_board_uses_its_own_library_and_is_not_simulated(tmp_path: Path) -> None:
    choice = choose(tmp_path, GOOD_BOARD)
    assert choice.path == INSTALLED
    assert not choice.simulated
    assert not choice.mock


def test_a_mock_that_was_installed_on_a_board_is_called_a_mock(tmp_path: Path) -> None:
    choice = choose(tmp_path, GOOD_BOARD, installed_is_mock=True)
    assert choice.path == INSTALLED
    assert choice.mock
    assert choice.simulated
    assert "No figure here is a figure of silicon" in (choice.note or "")


def test_the_language_model_runtime_is_not_taken_for_librknnrt() -> None:
    llm = {"path": "/opt/llm/librkllmrt.so", "taken": True, "is_mock": False}
    hidden = {"path": "/usr/lib/librknnrt.so", "taken": False, "is_mock": False}
    taken = {"path": "/usr/local/lib/librknnrt.so", "taken": True, "is_mock": True}
    assert installed_library([llm, hidden, taken]) == (Path("/usr/local/lib/librknnrt.so"), True)
    assert installed_library([llm, hidden]) == (None, False)
    assert installed_library([]) == (None, False)


def test_another_machine_runs_on_the_mock_and_says_so(tmp_path: Path) -> None:
    choice = choose(tmp_path, OTHER_MACHINE)
    assert choice.mock
    assert choice.simulated
    assert "no Rockchip board" in (choice.note or "")
    assert "No figure here is a figure of silicon" in (choice.note or "")


@pytest.mark.parametrize(
    ("board", "installed", "word"),
    [
        (BoardView(True, "none", None), INSTALLED, "stack"),
        (BoardView(True, "rocket", True), INSTALLED, "rocket"),
        (BoardView(True, "vendor-drm", False), INSTALLED, "device node"),
        (BoardView(True, "vendor-drm", None), INSTALLED, "device node"),
        (BoardView(True, "vendor-drm", True), None, "no librknnrt"),
        (BoardView(None, None, None), INSTALLED, "cannot be identified"),
        (BoardView(None, "vendor-drm", True), INSTALLED, "cannot be identified"),
    ],
)
def test_a_broken_or_unknown_board_never_gets_the_mock(
    tmp_path: Path, board: BoardView, installed: Path | None, word: str
) -> None:
    choice = choose(tmp_path, board, installed=installed)
    assert choice.path is None
    assert not choice.simulated
    assert word in (choice.reason or "")


def test_a_named_library_wins_on_every_machine(tmp_path: Path) -> None:
    named = tmp_path / "mine.so"
    assert choose(tmp_path, GOOD_BOARD, named=named) == Choice(named, False, False, None)
    elsewhere = choose(tmp_path, OTHER_MACHINE, named=named)
    assert elsewhere.path == named
    assert elsewhere.simulated
    assert "not known to be a Rockchip board" in (elsewhere.note or "")


def test_a_mock_named_on_a_real_board_is_still_simulated(tmp_path: Path) -> None:
    choice = choose(tmp_path, GOOD_BOARD, named=tmp_path / "m.so", named_is_mock=True)
    assert choice.simulated
    assert "is a mock" in (choice.note or "")


def test_the_mock_can_be_asked_for_on_a_board(tmp_path: Path) -> None:
    choice = choose(tmp_path, GOOD_BOARD, force_mock=True)
    assert choice.mock
    assert choice.simulated
    assert "asked for" in (choice.note or "")


def test_a_mock_that_is_not_built_is_said(tmp_path: Path) -> None:
    choice = choose(tmp_path, OTHER_MACHINE, mock_built=False)
    assert choice.path is None
    assert choice.finding_code == "NPU-D005"


def test_settings_of_the_caller_for_the_mock_are_kept() -> None:
    assert mock_environment({})["RKNN_MOCK_TIMING"] == "campaign"
    assert mock_environment({"RKNN_MOCK_TIMING": "off"})["RKNN_MOCK_TIMING"] == "off"
