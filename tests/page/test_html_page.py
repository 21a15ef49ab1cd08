# SPDX-License-Identifier: Apache-2.0
"""The HTML page: verdict first, every value leads to how it was obtained, nothing in it is live or leaves the file."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reports.html import render_html
from reports.page_model import SIMULATED_LINE
from reports.plots.series import Layer, ModelLayers
from tests.page.html_oracle import Taken
from tests.page.sample_reports import as_saved, bare_report, board_report, mock_report

PLOTS = ("roofline", "rate-over-k", "core-scaling", "time-over-m", "bandwidth", "conditions")


@pytest.fixture(scope="module")
def board() -> str:
    return render_html(as_saved(board_report()))


@pytest.fixture(scope="module")
def mock() -> str:
    return render_html(as_saved(mock_report()))


@pytest.mark.parametrize("make", [board_report, mock_report, bare_report])
def test_the_page_is_inert_and_every_link_leads_to_one_place(make: Any) -> None:
    assert Taken(render_html(as_saved(make()))).problems == []


def test_the_page_refuses_by_its_own_policy_to_load_or_run_anything(board: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', board)
    assert policy is not None
    assert policy[1].split("; ")[0] == "default-src 'none'"
    assert "script" not in policy[1]
    assert board.index("Content-Security-Policy") < board.index("<style>")


def test_the_verdict_stands_before_findings_and_findings_before_plots_and_numbers(board: str) -> None:
    places = [
        board.index(mark) for mark in ('id="verdict-title"', 'id="findings"', 'id="plots"', 'id="numbers"', 'id="how"')
    ]
    assert places == sorted(places)
    assert "Verdict: 1 error, 1 warning, 1 note" in board
    assert "WRONG: gemm_rate" in board


def test_a_finding_shows_its_next_steps_in_order(board: str) -> None:
    finding = board[board.index("NPU-C034") : board.index("NPU-P022")]
    assert finding.index("Run it again.") < finding.index("Update librknnrt.")


def test_every_plot_is_drawn_with_a_name_and_a_description(board: str) -> None:
    for name in PLOTS:
        figure = board[board.index(f'id="plot-{name}"') :]
        figure = figure[: figure.index("</figure>")]
        assert "<svg role=" in figure, name
        assert f'aria-labelledby="plot-{name}-title"' in figure
        assert re.search(rf'<title id="plot-{name}-title">[^<]{{5,}}</title>', figure), name
        assert re.search(rf'<desc id="plot-{name}-desc">[^<]{{20,}}</desc>', figure), name


def test_every_plot_leads_to_the_rows_it_is_made_of(board: str) -> None:
    for name, rows in (
        ("roofline", ("gemm_rate", "npu_stream")),
        ("rate-over-k", ("shape_limit",)),
        ("conditions", ()),
    ):
        figure = board[board.index(f'id="plot-{name}"') :]
        figure = figure[figure.index("Points from") : figure.index("</figure>")]
        assert re.findall(r">([a-z_]+)</a>", figure) == list(rows)
        for anchor in re.findall(r'href="#(table-[0-9]+)"', figure):
            assert f'<details id="{anchor}"' in board
    assert ">all measured rows</a>" in figure


def test_what_was_not_measured_says_so_and_why() -> None:
    page = render_html(as_saved(bare_report()))
    assert page.count("<strong>not measured:</strong>") == len(PLOTS) + 1  # and the matrix of types
    assert "<svg" not in page
    assert page.count(">not measured</span>") == 10


def test_simulated_stands_at_the_top_at_the_end_and_beside_every_plot(mock: str) -> None:
    assert mock.index("SIMULATED: The mock answered") < mock.index("<h1>")
    assert mock.rindex(SIMULATED_LINE) > mock.index('id="how"')
    for name in PLOTS:
        figure = mock[mock.index(f'id="plot-{name}"') :]
        assert "SIMULATED" in figure[: figure.index("</h3>")], name
    assert "<title>SIMULATED" in mock


def test_a_board_is_nowhere_called_simulated(board: str) -> None:
    assert "SIMULATED" not in board


def test_a_report_that_does_not_say_what_it_is_counts_as_simulated() -> None:
    report = as_saved(board_report())
    del report["simulated"]
    assert SIMULATED_LINE in render_html(report)


def test_rows_of_the_cpu_are_not_called_simulated_beside_a_mock(mock: str) -> None:
    table = mock[mock.index("CPU bandwidth of this machine") :]
    assert "SIMULATED" not in table[: table.index("</summary>")]
    table = mock[mock.index("NPU weight streaming") :]
    assert "SIMULATED" in table[: table.index("</summary>")]


def test_every_number_leads_to_the_row_it_came_from() -> None:
    report = as_saved(board_report())
    page = render_html(report)
    for index, row in enumerate(report["measurements"]):
        assert f'href="#row-{index}"' in page or row["parameters"].get("type_name") == "unassigned", row["name"]
        entry = page[page.index(f'<div id="row-{index}">') :]
        entry = entry[: entry.index("</div>")]
        if row["median"] is not None:
            assert f"{row['median']:.6g}" in entry
            assert "median of 3 samples" in entry
        assert 'href="#method-' in entry
        assert ("conditions valid" in entry) == row["validity"]["valid"]


def test_every_fact_on_the_page_leads_to_its_source(board: str) -> None:
    assert '<a class="how" href="#fact-soc.name">RK3588</a>' in board
    entry = board[board.index('<div id="fact-soc.name">') :]
    assert "from /proc/device-tree/compatible" in entry[: entry.index("</div>")]
    entry = board[board.index('<div id="fact-ddr.theoretical_gbps">') :]
    assert ">assumed</span>" in entry[: entry.index("</div>")]
    entry = board[board.index('<div id="fact-npu.load_percent">') :]
    assert "permission denied" in entry[: entry.index("</div>")]


def test_a_worked_out_row_is_not_called_measured(board: str) -> None:
    entry = board[board.index("core_scaling_fit contexts=3") :]
    assert ">worked out</span>" in entry[: entry.index("</div>")]


def test_types_stand_in_words_and_colour(board: str) -> None:
    matrix = board[board.index('id="types"') : board.index('id="claims"')]
    for words in ("2 int8_int8_int32", "smallest, native", "larger, norm", "refused", "crashed"):
        assert words in matrix
    assert 'class="tone-error"' in matrix
    assert "codes 13." in matrix


def test_a_models_layers_are_said_to_be_no_measurement() -> None:
    model = ModelLayers("Tiny <b>", (Layer("ffn_up", 640, 2048, 18), Layer("output", 640, 262144, 1)))
    page = render_html(as_saved(board_report()), model)
    assert "the 19 matmuls of Tiny &lt;b&gt; as W8A8" in page
    assert Taken(page).problems == []


def test_the_library_is_named_by_its_path_and_the_mock_as_the_mock(board: str) -> None:
    assert "library /usr/lib/librknnrt.so, librknnrt version: 2.3.2" in board
    report = as_saved(mock_report())
    report["run"]["library"] = {"path": "/somewhere/mock/librknnrt.so", "version": "2.3.2 (mock)", "mock": True}
    page = render_html(report)
    assert "library the mock of this kit, 2.3.2 (mock)" in page
    assert "/somewhere" not in page


def test_a_run_that_broke_off_says_so() -> None:
    report = as_saved(board_report())
    report["run"]["complete"] = False
    assert "did not end by itself" in render_html(report)


def test_the_same_report_gives_the_same_bytes(board: str) -> None:
    assert render_html(as_saved(board_report())) == board
