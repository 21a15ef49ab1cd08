# SPDX-License-Identifier: Apache-2.0
"""The page says what the report says, verdict first, and shows a stranger's text as inert ASCII."""

from __future__ import annotations

import builtins
import copy
import io
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.terminal import render
from reports.text import colour_wanted, inert, table


def test_the_page_says_simulated_at_its_top_and_at_its_end(report: dict[str, Any]) -> None:
    lines = [line for line in render(report).splitlines() if line.strip()]
    assert any("SIMULATED" in line for line in lines[:4])
    assert "SIMULATED" in lines[-1]
    assert "(SIMULATED)" in render(report)


def test_a_real_run_never_says_simulated(report: dict[str, Any]) -> None:
    report["simulated"], report["simulation"] = False, None
    assert "SIMULATED" not in render(report)


def test_the_verdict_stands_before_findings_and_findings_before_numbers(report: dict[str, Any]) -> None:
    page = render(report)
    places = [page.index(word) for word in ("Verdict:", "Findings", "GEMM rate", "Steps")]
    assert places == sorted(places)


def test_a_wrong_row_shows_no_number_and_says_wrong(report: dict[str, Any]) -> None:
    page = render(report)
    assert "WRONG: type=2" in page
    assert "got 17, expected 16" in page
    assert "1 of 2 measured rows proven exact, 1 wrong" in page


def test_a_run_cut_short_is_told_so(report: dict[str, Any]) -> None:
    report["run"]["complete"] = False
    assert "did not end by itself" in render(report)


def test_escape_sequences_of_a_hostile_report_never_reach_the_terminal(report: dict[str, Any]) -> None:
    evil = "\x1b]0;owned\x07\x1b[2Jtext\r\nnext\u202e\x9b31m"
    hostile = copy.deepcopy(report)

    def poison(value: Any) -> Any:
        if isinstance(value, str):
            return value if value in ("gemm_rate", "passed", "failed", "error") else evil + value
        if isinstance(value, dict):
            return {key: poison(item) for key, item in value.items()}
        if isinstance(value, list):
            return [poison(item) for item in value]
        return value

    page = render(poison(hostile))
    assert all(line.isascii() and line.isprintable() for line in page.splitlines())


def test_colour_is_only_paint(report: dict[str, Any]) -> None:
    painted = render(report, colour=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render(report, colour=False)


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour_needs_a_terminal_and_no_no_color() -> None:
    assert colour_wanted(Screen(), {"TERM": "xterm"})
    assert not colour_wanted(Screen(), {"TERM": "xterm", "NO_COLOR": "1"})
    assert colour_wanted(Screen(), {"TERM": "xterm", "NO_COLOR": ""})
    assert not colour_wanted(Screen(), {"TERM": "dumb"})
    assert not colour_wanted(Screen(), {})
    assert not colour_wanted(io.StringIO(), {"TERM": "xterm"})


@given(st.text(max_size=300))
def test_inert_text_is_one_line_of_printable_ascii(text: str) -> None:
    out = inert(text, 100)
    assert out.isascii()
    assert out.isprintable() or not out
    assert len(out) <= 100 * 18 + 3  # one character may stand for a longer ASCII form


def test_tables_look_alike_with_and_without_tabulate(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [["a", "1.0"], ["long name", "22.5"]]
    headers, align = ("name", "TOPS"), ("left", "right")
    with_package = table(rows, headers, align)
    real_import = builtins.__import__

    def no_tabulate(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "tabulate":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_tabulate)
    assert table(rows, headers, align) == with_package
    assert table([], headers, align)[0].split() == ["name", "TOPS"]


def test_a_report_of_odd_shape_is_shown_as_far_as_it_goes() -> None:
    assert "Verdict" in render({})
    assert "Verdict" in render({"facts": {"soc.name": {"value": {"odd": 1}}}, "measurements": [{}], "findings": [{}]})
