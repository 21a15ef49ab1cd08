# SPDX-License-Identifier: Apache-2.0
"""Published figures on the page: beside the row they are held against, and never beside one of the mock."""

from __future__ import annotations

import pytest

from reports.html import render_html
from reports.markdown import render_markdown
from reports.page_baselines import published
from tests.page.html_oracle import Taken
from tests.page.sample_reports import as_saved, bare_report, board_report, mock_report


def test_each_figure_leads_to_the_row_it_was_held_against() -> None:
    report = as_saved(board_report())
    rows = published(report).rows
    assert len(rows) >= 5
    for row in rows:
        measured = report["measurements"][int(row.anchor.removeprefix("row-"))]
        assert row.what.startswith(measured["name"])
        assert row.here.startswith(f"{measured['median']:.4g} ")
        assert published(report).sources[row.source - 1]


def test_a_slow_board_is_below_with_a_sentence_of_what_may_explain_it() -> None:
    report = as_saved(board_report())
    for row in report["measurements"]:
        if row["name"] == "npu_stream":
            row["median"] /= 2
    found = next(row for row in published(report).rows if row.what.startswith("npu_stream"))
    assert (found.word, found.tone) == ("below", "error")
    assert found.sentence.startswith("slower than published")


def test_figures_stand_in_html_and_markdown() -> None:
    report = as_saved(board_report())
    html, markdown = render_html(report), render_markdown(report)
    assert Taken(html).problems == []
    for row in published(report).rows:
        assert f'href="#{row.anchor}">{row.here}</a>, published {row.published} ' in html
        assert f"| {row.here} | {row.published} |" in markdown


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({}, "SIMULATED"),
        ({"simulated": False, "simulation": None, "facts": {}}, "SoC is unknown"),
        ({"measurements": []}, "nothing was measured"),
        ({"facts": []}, "not every part of the report is of its kind"),
    ],
)
def test_what_is_not_compared_says_why(change: dict[str, object], why: str) -> None:
    report = {**as_saved(mock_report()), **change}
    assert published(report).rows == ()
    assert why in published(report).why_not
    assert why in render_html(report)
    assert why in render_markdown(report)


def test_a_bare_report_is_not_compared() -> None:
    assert published(as_saved(bare_report())).why_not
