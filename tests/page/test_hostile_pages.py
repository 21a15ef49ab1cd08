# SPDX-License-Identifier: Apache-2.0
"""Reports that were made to hurt: HTML and Markdown show them inert, whatever stands where."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reports.html import render_html
from reports.markdown import render_markdown
from reports.plots import canvas, gallery
from tests.page.hostile import MARK, TEXTS, VALUES, mutated
from tests.page.html_oracle import Taken
from tests.page.sample_reports import Report, as_saved, board_report, copied
from tests.page.test_markdown_page import live

SEEDS = 300
DRAWN_SEEDS = 8


def small_report() -> Report:
    """One row of each kind: the page of it takes milliseconds, and every part of a page is in it."""
    report = board_report()
    kinds: dict[str, Any] = {}
    for row in report["measurements"]:
        kinds.setdefault(row["name"], row)
    report["measurements"] = list(kinds.values())
    return report


def check(html: str) -> None:
    assert Taken(html).problems == []


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are taken out of the report as ever, and not drawn: a drawing takes a tenth of a second."""

    def outline(name: str, title: str, description: str, *_: Any) -> str:
        return canvas._inlined("<svg></svg>", name, title, description)

    monkeypatch.setattr(gallery, "drawn", outline)


@pytest.mark.usefixtures("without_drawing")
def test_mutated_reports_are_shown_inert_as_html() -> None:
    base = small_report()
    shown = 0
    for seed in range(SEEDS):
        html = render_html(mutated(seed, base))
        check(html)
        shown += MARK in html
    assert shown > SEEDS / 8  # the texts did reach the page


def test_mutated_reports_are_shown_inert_as_markdown() -> None:
    base = small_report()
    shown = 0
    for seed in range(SEEDS):
        text = render_markdown(mutated(seed, base))
        assert text.isascii()
        assert re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text) is None
        shown += MARK in text
        if seed % 20 == 0:
            assert live(text) == []
    assert shown > SEEDS / 8


def test_mutated_reports_are_drawn_whatever_their_numbers_are() -> None:
    for seed in range(DRAWN_SEEDS):
        check(render_html(mutated(seed, small_report())))


def _everywhere(value: Any, put: Any) -> Any:
    """The same tree with every leaf replaced."""
    if isinstance(value, dict):
        return {key: _everywhere(item, put) for key, item in value.items()}
    if isinstance(value, list):
        return [_everywhere(item, put) for item in value]
    return put


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_a_text_in_every_place_at_once_stays_text(text: str) -> None:
    report = small_report()
    for part in ("facts", "measurements", "findings", "steps", "tool", "run", "simulation"):
        report[part] = _everywhere(report[part] or {"note": 1}, text)
    check(render_html(copied(report)))
    assert live(render_markdown(report)) == []


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
def test_a_value_in_place_of_each_part_of_the_report(value: Any) -> None:
    for key in board_report():
        report = small_report()
        report[key] = value
        check(render_html(report))
        render_markdown(report)


def test_hostile_names_come_out_as_text_in_plots() -> None:
    report = as_saved(board_report())
    for row in report["measurements"]:
        if row["name"] == "cpu_bandwidth":
            row["parameters"]["cpus"] = "<script>" + "$x_$"
        conditions = row["evidence"]["conditions"]
        conditions["temperature_c"] = {"</svg><script>$\\frac": {"min": 1, "median": 2, "max": 3}}
    html = render_html(report)
    check(html)
    assert "&lt;script&gt;" in html
    assert "&lt;/svg&gt;&lt;script&gt;$" in html


def test_numbers_at_the_ends_of_the_range_are_drawn_or_left_out() -> None:
    for number in (5e-324, 1e-15, 1e15, -1.0, 10**39):
        report = small_report()
        for row in report["measurements"]:
            row["median"] = number
            for key in ("M", "K", "N", "contexts"):
                if key in row["parameters"]:
                    row["parameters"][key] = number
        check(render_html(report))


def test_a_report_of_very_many_rows_has_a_page_of_bounded_size() -> None:
    report = small_report()
    report["measurements"] = report["measurements"] * 1000
    report["findings"] = report["findings"] * 2000
    report["facts"] = {f"a.b{index}": report["facts"]["soc.name"] for index in range(5000)}
    html = render_html(report)
    assert len(html) < 8_000_000
    assert "more rows stand in the JSON report" in html
    assert len(render_markdown(report)) < 3_000_000
