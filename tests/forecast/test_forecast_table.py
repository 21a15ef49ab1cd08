# SPDX-License-Identifier: Apache-2.0
"""The table of forecasts beside published figures: what is within its limit, what misses, and that it can fail."""

from __future__ import annotations

from typing import Any

import pytest

from bench import forecast_table
from bench.forecast_table import Result, composed_report, dimensions, held_out_fit, page, results


@pytest.fixture(scope="module")
def rows() -> list[Result]:
    return results()


def of(rows: list[Result], kind: str, start: str) -> list[Result]:
    found = [row for row in rows if row.kind == kind and row.row.startswith(start)]
    assert found
    return found


def test_vendor_decode_rows_of_dense_models_are_within_10_percent_but_for_one_that_is_explained(
    rows: list[Result],
) -> None:
    for kind in ("a priori", "held out"):
        missed = [row.row for row in of(rows, kind, "rkllm RK3588") if not row.hit]
        assert missed == ["rkllm RK3588 Qwen3-0.6B"]
    assert all(row.hit for row in of(rows, "held out", "rkllm RK3576"))


def test_decode_by_cores_is_within_10_percent_without_anything_fitted(rows: list[Result]) -> None:
    assert [row.hit for row in of(rows, "a priori", "gemma-4-12b tg64")] == [True, True]


def test_prompts_by_cores_are_within_10_percent_where_the_other_rows_told_the_rate(rows: list[Result]) -> None:
    assert all(row.hit for row in of(rows, "held out", "gemma-4-12b pp512"))
    solved = [row for row in of(rows, "carried", "gemma-4-12b pp512") if row.row.endswith("from 3")]
    assert [row.hit for row in solved] == [True, True]


def test_prompts_from_the_one_published_rate_miss_and_say_why(rows: list[Result]) -> None:
    missed = [row for row in of(rows, "carried", "gemma-4-12b pp512") if row.row.endswith("4096^3")]
    assert [row.hit for row in missed] == [False, False, False]
    assert all("4096^3" in row.note for row in missed)


def test_every_row_beyond_its_limit_is_explained_and_the_page_shows_it(rows: list[Result]) -> None:
    assert all(row.hit or row.note for row in rows)
    text = "\n".join(page(rows))
    assert text.count("MISS") == sum(not row.hit for row in rows if row.predicted is not None)
    assert forecast_table.ONLY_LARGE in text


def test_another_bandwidth_in_the_composed_report_is_seen_as_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(name: str) -> dict[str, Any]:
        report = composed_report(name)
        for each in report["measurements"]:
            if each["name"] == "npu_stream" and each["parameters"]["contexts"] == 3:
                each["samples"] = [0.7 * value for value in each["samples"]]
                each["median"] *= 0.7
        return report

    monkeypatch.setattr(forecast_table, "composed_report", slower)
    found = [row for row in results() if row.kind == "a priori" and row.row.startswith("rkllm")]
    assert sum(row.hit for row in found) < len(found) // 2


def test_a_row_is_predicted_without_itself() -> None:
    points = {"a": (1.0, 3.0), "b": (2.0, 5.0), "c": (4.0, 9.0), "out": (3.0, 1000.0)}
    assert held_out_fit(points, "out") == pytest.approx(7.0)


def test_the_weights_of_the_models_are_those_their_publishers_state() -> None:
    billions = {"Qwen2-0.5B": 0.494, "Qwen3-0.6B": 0.596, "TinyLlama-1.1B": 1.034, "Gemma2-2B": 2.614}
    for name, stated in billions.items():
        assert dimensions()[name].matmul_weights / 1e9 == pytest.approx(stated, rel=0.005)


def test_every_composed_figure_names_its_source() -> None:
    for board in forecast_table.load("boards.json").values():
        assert all(len(each["source"]) > 5 and each["samples"] for each in board["measurements"])
