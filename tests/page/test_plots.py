# SPDX-License-Identifier: Apache-2.0
"""The plots: every right point is drawn once and no wrong one, text stays text, colours follow the page's ground."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports.plots import bandwidth, canvas, conditions, core_scaling, plots_of, rate_over_k, roofline, time_over_m
from reports.plots.series import Drawing, Layer, Missing, ModelLayers, operand_bytes, ops_per_byte
from tests.page.sample_reports import as_saved, bare_report, board_report, mock_report

MAKERS: tuple[Callable[[dict[str, Any]], Drawing | Missing], ...] = (
    roofline.make,
    rate_over_k.make,
    core_scaling.make,
    time_over_m.make,
    bandwidth.make,
    conditions.make,
)


def axes_of(made: Drawing | Missing) -> list[Any]:
    """The axes that the drawing makes, for a look at the lines in them."""
    from matplotlib.figure import Figure  # noqa: PLC0415

    assert isinstance(made, Drawing)
    figure = Figure()
    made.draw(figure)
    return list(figure.axes)


def marks_of(axes: Any) -> list[tuple[float, float, bool]]:
    """(x, y, hollow) of every mark without a line."""
    return [
        (float(x), float(y), line.get_markerfacecolor() == "none")
        for line in axes.lines
        if line.get_linestyle() == "None" and line.get_marker() not in ("x", "+")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def test_the_roofline_holds_each_right_point_of_the_report_once() -> None:
    report = as_saved(board_report())
    expected = []
    for row in report["measurements"]:
        if row["name"] == "gemm_rate" and row["verdict"] == "passed":
            given_ = row["parameters"]
            m, k, n = given_["M"], given_["K"], given_["N"]
            a, c = {2: (8, 32), 1: (16, 32), 10: (4, 16)}[given_["type"]]
            traffic = (m * k * a + k * n * a + m * n * c) / 8
            expected.append((2 * m * k * n / traffic, row["median"], not row["validity"]["valid"]))
    drawn = marks_of(axes_of(roofline.make(report))[0])
    assert len(drawn) == len(expected)
    for one, other in zip(sorted(drawn), sorted(expected), strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_a_wrong_result_has_no_point_and_is_counted() -> None:
    report = as_saved(board_report())
    made = roofline.make(report)
    assert isinstance(made, Drawing)
    assert "Left out: 1 rows whose result was wrong or missing." in made.caption
    before = len(marks_of(axes_of(made)[0]))
    next(row for row in report["measurements"] if row["name"] == "gemm_rate")["verdict"] = "failed"
    assert len(marks_of(axes_of(roofline.make(report))[0])) == before - 1


def test_the_roof_rises_at_the_streaming_rate_and_ends_at_the_highest_rate() -> None:
    report = as_saved(board_report())
    lines = [line for line in axes_of(roofline.make(report))[0].lines if line.get_linestyle() != "None"]
    roof = max(lines, key=lambda line: max(line.get_ydata()))
    xs, ys = list(roof.get_xdata()), list(roof.get_ydata())
    assert ys[0] == pytest.approx(xs[0] * 11.1 / 1000)
    assert ys[-1] == pytest.approx(0.69)
    assert xs[1] == pytest.approx(0.69 / 11.1 * 1000)


def test_a_models_layers_lie_on_the_roof() -> None:
    model = ModelLayers("m", (Layer("ffn_up", 640, 2048, 18),))
    axes = axes_of(roofline.make(as_saved(board_report()), model))[0]
    crosses = {line.get_marker(): (line.get_xdata()[0], line.get_ydata()[0]) for line in axes.lines}
    low = 2 * 640 * 2048 / (640 + 640 * 2048 + 4 * 2048)
    assert crosses["x"] == pytest.approx((low, low * 11.1 / 1000))
    high = 2 * 512 * 640 * 2048 / (512 * 640 + 640 * 2048 + 4 * 512 * 2048)
    assert crosses["+"] == pytest.approx((high, min(0.69, high * 11.1 / 1000)))


def test_a_model_without_a_measured_roof_is_not_placed() -> None:
    report = as_saved(board_report())
    report["measurements"] = [row for row in report["measurements"] if row["name"] != "npu_stream"]
    made = roofline.make(report, ModelLayers("m", (Layer("ffn_up", 640, 2048, 18),)))
    assert isinstance(made, Drawing)
    assert "need a measured int8 rate and a measured streaming rate" in made.caption
    assert all(line.get_marker() not in ("x", "+") for line in axes_of(made)[0].lines)


def test_the_cliff_is_named_with_its_k_on_both_sides() -> None:
    made = rate_over_k.make(as_saved(board_report()))
    assert isinstance(made, Drawing)
    assert "int8: fast up to K = 8192; K = 8224 is slow, 13 times" in made.description
    assert "fp16: fast up to K = 4096" in made.description
    lines = {line.get_label(): line for line in axes_of(made)[0].lines}
    at = dict(zip(lines["int8"].get_xdata(), lines["int8"].get_ydata(), strict=True))
    assert at[8192.0] == pytest.approx(2e-3 / 0.003)
    assert at[8224.0] == pytest.approx(2e-3 / 0.04)


def test_scaling_is_drawn_beside_the_ideal_and_amdahls_line() -> None:
    lines = {line.get_label(): line for line in axes_of(core_scaling.make(as_saved(board_report())))[0].lines}
    assert list(lines["measured"].get_ydata()) == pytest.approx([1.0, 1.26 / 0.66, 1.83 / 0.66])
    amdahl = lines["Amdahl, serial 0.04"]
    assert amdahl.get_ydata()[-1] == pytest.approx(1 / (0.04 + 0.96 / 3))
    assert list(lines["ideal"].get_ydata()) == [1, 3]


def test_one_core_alone_is_no_scaling() -> None:
    report = as_saved(board_report())
    for row in report["measurements"]:
        if row["name"] == "core_scaling" and row["parameters"]["contexts"] > 1:
            row["verdict"] = "failed"
    made = core_scaling.make(report)
    assert isinstance(made, Missing)
    assert "one core" in made.why


def test_the_limit_by_theory_is_drawn_or_said_to_be_unknown() -> None:
    known = bandwidth.make(as_saved(board_report()))
    assert isinstance(known, Drawing)
    assert "of 51.2 GB/s by theory (52 %)" in known.description
    assert any(list(line.get_xdata()) == [51.2, 51.2] for line in axes_of(known)[0].lines)
    unknown = bandwidth.make(as_saved(mock_report()))
    assert isinstance(unknown, Drawing)
    assert "unknown: needs the highest memory clock" in unknown.caption
    assert "NPU rows are of the mock" in unknown.caption


def test_clocks_and_heat_have_a_panel_each_in_the_order_of_the_run() -> None:
    clocks, heat = axes_of(conditions.make(as_saved(board_report())))
    npu = next(line for line in clocks.lines if line.get_label() == "NPU")
    count = len(board_report()["measurements"])
    assert list(npu.get_xdata()) == pytest.approx([1.0 + 2 * at for at in range(count)])
    assert list(npu.get_ydata()) == pytest.approx([1000.0 - 5 * at for at in range(count)])
    zone = next(line for line in heat.lines if line.get_label() == "soc-thermal")
    assert list(zone.get_ydata())[:2] == pytest.approx([40.0, 41.0])
    band = clocks.collections[0].get_paths()[0].vertices
    assert [min(band[:, 1]), max(band[:, 1])] == pytest.approx([(1000 - 5 * (count - 1)) * 0.99, 1010])


def test_conditions_that_could_not_be_read_are_told_with_the_reason() -> None:
    made = conditions.make(as_saved(mock_report()))
    assert isinstance(made, Missing)
    assert "no readable cur_freq" in made.why


@pytest.mark.parametrize("make", MAKERS)
def test_nothing_is_drawn_of_a_report_without_rows(make: Callable[[dict[str, Any]], Drawing | Missing]) -> None:
    made = make(as_saved(bare_report()))
    assert isinstance(made, Missing)
    assert made.why.endswith(".")


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return {plot.name: plot.svg or "" for plot in plots_of(as_saved(board_report()))}


def test_text_in_a_plot_is_text(drawn: dict[str, str]) -> None:
    for name, label in (
        ("roofline", "operations per byte of A, B and C"),
        ("rate-over-k", "TOPS"),
        ("core-scaling", "times the rate of one"),
        ("time-over-m", "us per run"),
        ("bandwidth", "NPU, 3 cores"),
        ("conditions", "degrees C"),
    ):
        texts = ["".join(item.itertext()) for item in ElementTree.fromstring(drawn[name]).iter("text")]
        assert label in texts, name


def test_no_plot_brings_a_colour_a_style_sheet_or_an_id_of_its_own(drawn: dict[str, str]) -> None:
    for name, svg in drawn.items():
        assert re.findall(r"#[0-9a-fA-F]{6}\b", svg) == [], name
        assert "<style" not in svg
        assert "<metadata" not in svg
        assert all(found.startswith(f"plot-{name}-") for found in re.findall(r'\bid="([^"]*)"', svg)), name
        assert set(re.findall(r"url\(#([^)]*)\)", svg)) <= set(re.findall(r'\bid="([^"]*)"', svg))
        assert "var(--plot-ink)" in svg


def test_series_differ_in_mark_and_dash_as_well_as_in_colour() -> None:
    looks = [canvas.style(index) for index in range(len(canvas.SERIES))]
    for key in ("color", "marker", "linestyle"):
        assert len({str(look[key]) for look in looks}) == len(looks), key


@settings(max_examples=100, deadline=None)
@given(*(st.integers(1, 10**6),) * 3)
def test_operations_per_byte_equal_those_of_whole_numbers(m: int, k: int, n: int) -> None:
    assert ops_per_byte(m, k, n, (1.0, 1.0, 4.0)) == pytest.approx(
        2 * m * k * n / (m * k + k * n + 4 * m * n), rel=1e-12
    )


def test_operand_sizes_come_from_the_name_of_the_type() -> None:
    assert operand_bytes("int8_int8_int32") == (1.0, 1.0, 4.0)
    assert operand_bytes("float16_int4_bfloat16") == (2.0, 0.5, 2.0)
    assert operand_bytes("unassigned") is None
    assert operand_bytes("int8_int9_int32") is None
