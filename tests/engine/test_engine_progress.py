# SPDX-License-Identifier: Apache-2.0
"""The progress bar: on a terminal it shows and goes away, anywhere else nothing is written."""

from __future__ import annotations

import io
import sys

import pytest

from reference_engine.progress_bar import progress_bar


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def shown_on(screen: Screen) -> str:
    with progress_bar("loading", screen, unit="B") as bar:
        bar.show(0, 4_000_000, "blk.0.attn_q.weight")
        bar.show(2_000_000, 4_000_000, "a\x1b[31mname")
    return screen.getvalue()


def test_a_terminal_sees_how_far_it_is_and_no_escape_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tqdm")
    monkeypatch.setattr("reference_engine.progress_bar.DELAY_S", 0.0)
    shown = shown_on(Screen(terminal=True))
    assert "loading" in shown
    assert "2.00M/4.00M" in shown
    assert "\x1b[31m" not in shown
    assert shown.endswith("\r")  # the line is free again


def test_a_file_or_pipe_sees_nothing() -> None:
    assert shown_on(Screen(terminal=False)) == ""


def test_without_tqdm_nothing_is_shown_and_nothing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    assert shown_on(Screen(terminal=True)) == ""
