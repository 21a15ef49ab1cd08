# SPDX-License-Identifier: Apache-2.0
"""Which librknnrt a run calls, and what that makes of its numbers. Pure: decides from facts, loads nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

VENDOR_STACKS = ("vendor-drm", "vendor-misc", "out-of-tree-merged", "out-of-tree-split")
"""NPU stacks whose kernel interface librknnrt speaks."""

DEFAULT_PERSONA = "rk3588"
DEFAULT_TIMING = "campaign"


@dataclass(frozen=True)
class BoardView:
    """The few facts the choice depends on. ``is_rockchip`` is None where the machine does not tell."""

    is_rockchip: bool | None
    stack: str | None
    device_accessible: bool | None


@dataclass(frozen=True)
class Choice:
    """``path`` is None when no library is to be called; ``reason`` says why. ``finding_code`` names the cause."""

    path: Path | None
    mock: bool
    simulated: bool
    note: str | None
    reason: str | None = None
    finding_code: str | None = None


def installed_library(rows: Sequence[Mapping[str, Any]]) -> tuple[Path | None, bool]:
    """The librknnrt that the loader takes, from the rows of the fact ``libraries``, and whether it is a mock.

    The loader takes one file of each name, so librkllmrt may stand among the rows as taken too, and come first.
    """
    for row in rows:
        if row.get("taken") and PurePosixPath(str(row["path"])).name.startswith("librknnrt"):
            return Path(str(row["path"])), bool(row.get("is_mock"))
    return None, False


def choose_library(
    board: BoardView,
    *,
    named: Path | None,
    named_is_mock: bool,
    force_mock: bool,
    installed: Path | None,
    installed_is_mock: bool,
    mock_library: Path,
    env: Mapping[str, str],
) -> Choice:
    """Choose by this order: a library named by hand; the mock when asked for; the board's own; else the mock.

    The mock stands in only where the machine is known to be no Rockchip board. On a board, and where the machine
    cannot be identified, nothing stands in: the run diagnoses instead.
    """
    if named is not None:
        simulated = named_is_mock or board.is_rockchip is not True
        note = None
        if named_is_mock:
            note = mock_note("The library named by hand is a mock", env)
        elif simulated:
            note = (
                "This machine is not known to be a Rockchip board: whatever the library named by hand answered, "
                "no figure here is a figure of an NPU."
            )
        return Choice(named, named_is_mock, simulated, note)
    if force_mock or board.is_rockchip is False:
        why = "The mock was asked for" if force_mock else "This machine is no Rockchip board"
        if not mock_library.is_file():
            reason = "the mock librknnrt is not built"
            return Choice(None, True, False, None, reason, "NPU-D005")
        return Choice(mock_library, True, True, mock_note(why, env))
    if board.is_rockchip is None:
        return Choice(
            None,
            False,
            False,
            None,
            "this machine cannot be identified, so no library is called; --mock runs on the mock",
        )
    if board.stack not in VENDOR_STACKS:
        return Choice(None, False, False, None, f"librknnrt cannot use this NPU stack ({board.stack or 'unknown'})")
    if not board.device_accessible:
        return Choice(None, False, False, None, "no NPU device node that this user may open")
    if installed is None:
        return Choice(None, False, False, None, "no librknnrt on the loader path", "NPU-D008")
    if installed_is_mock:
        return Choice(
            installed, True, True, mock_note("The librknnrt that the loader takes on this board is a mock", env)
        )
    return Choice(installed, False, False, None)


def mock_note(why: str, env: Mapping[str, str]) -> str:
    """The sentence that stands on every page of a simulated run."""
    persona = env.get("RKNN_MOCK_PERSONA", DEFAULT_PERSONA)
    timing = env.get("RKNN_MOCK_TIMING", DEFAULT_TIMING)
    return (
        f"{why}; the mock librknnrt (persona {persona}, timing {timing}) answered in place of an NPU. "
        "No figure here is a figure of silicon."
    )


def mock_environment(env: Mapping[str, str]) -> dict[str, str]:
    """``env`` with the mock's persona and timing set where the caller set none.

    The mock looks at bound operands after a sync only, as the device does: comparing 16 MiB at each run would take
    longer than the modelled run.
    """
    return {
        "RKNN_MOCK_PERSONA": DEFAULT_PERSONA,
        "RKNN_MOCK_TIMING": DEFAULT_TIMING,
        "RKNN_MOCK_MEMO": "sync",
        **env,
    }
