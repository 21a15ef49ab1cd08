# SPDX-License-Identifier: Apache-2.0
"""Published figures: every file is well formed and says where it is from; a board is held against those of its SoC."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.baselines import compare_with_baselines, load_baselines, why_not_compared
from reports.baselines.compare import BaselineRow
from reports.baselines.page import baseline_lines
from reports.baselines.table import FOLDER, BadBaseline, read_baseline
from reports.terminal import render
from tests.reports_diff.made_reports import set_samples, stored

Report = dict[str, Any]
UPSIDE_DOWN = {"name": "x", "parameters": {}, "low": 2, "high": 1, "unit": "tops", "reference": True}
INT8 = {"type": 2, "type_name": "int8_int8_int32"}


def row(name: str, value: float, unit: str, parameters: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {
        **{"name": name, "parameters": parameters, "unit": unit, "checked": "exact", "verdict": "passed"},
        **{"validity": {"valid": True, "reasons": []}, "method": "m", "reason": None, "evidence": {"conditions": {}}},
    }
    set_samples(made, [value] * 5)
    return made


def board(*rows: dict[str, Any], facts: dict[str, Any] | None = None, soc: str = "RK3588") -> Report:
    report = {**stored(), "simulated": False, "simulation": None, "measurements": list(rows)}
    report["run"]["library"] = None
    for key, value in {"soc.name": soc, "npu.stack": "vendor", **(facts or {})}.items():
        report["facts"][key] = {**report["facts"].get(key, report["facts"]["soc.name"]), "value": value, "reason": None}
    return report


def gemm(value: float) -> dict[str, Any]:
    shape = {"M": 4096, "K": 4096, "N": 4096, "B_layout": "native", "B_quant": "per_channel", "core_mask": 1}
    return row("gemm_rate", value, "tops", {**INT8, **shape, "AC_layout": "norm"})


def scaling(contexts: int, value: float) -> dict[str, Any]:
    return row("core_scaling", value, "tops", {**INT8, "contexts": contexts})


def the(rows: list[BaselineRow], name: str = "gemm_rate") -> BaselineRow:
    (found,) = [each for each in rows if each.name == name]
    return found


def test_every_file_says_where_when_and_how() -> None:
    loaded = load_baselines()
    assert len(loaded) == len(list(FOLDER.glob("*.json"))) >= 12
    for baseline in loaded:
        assert len(baseline.conditions) > 10
        assert baseline.date is not None or baseline.file == "rk3588_stream.json"
    assert sum(len(baseline.figures) for baseline in loaded) > 90
    assert len({baseline.name for baseline in loaded}) == len(loaded)


def test_the_campaign_is_there_with_its_figures() -> None:
    (campaign,) = [each for each in load_baselines() if each.file == "rk3588_campaign.json"]
    figures = {(figure.name, figure.parameters.get("contexts")): figure.low for figure in campaign.figures}
    assert figures["core_scaling", 3] == 1.83
    assert figures["npu_stream", 3] == 28.0
    rates = {
        (figure.parameters["tokens"], figure.parameters["cores"]): figure.low
        for figure in campaign.figures
        if figure.name == "llm_prefill"
        and figure.parameters["model"].startswith("gemma")
        and "note" not in figure.parameters
    }
    assert rates[512, 1] == 18.28


def test_no_figure_of_the_mock_is_compared() -> None:
    report = stored()
    report["facts"]["soc.name"].update(value="RK3588", reason=None)
    assert compare_with_baselines(report) == []
    assert "SIMULATED" in str(why_not_compared(report))
    assert "SIMULATED" in baseline_lines(report, 100)[0]


@pytest.mark.parametrize("soc", ["RK3562J", "unheard"])
def test_figures_of_another_soc_are_not_taken(soc: str) -> None:
    report = board(gemm(0.69), soc=soc)
    assert compare_with_baselines(report) == []
    assert why_not_compared(report) is not None


@pytest.mark.parametrize(
    ("value", "word"), [(0.69, "in range"), (0.63, "in range"), (0.61, "below"), (0.75, "in range"), (0.80, "above")]
)
def test_a_figure_is_in_range_within_ten_percent(value: float, word: str) -> None:
    assert the(compare_with_baselines(board(gemm(value)))).word == word


def test_a_time_that_is_too_long_is_below() -> None:
    fixed = {**INT8, "part": "fixed"}
    found = the(compare_with_baselines(board(row("run_cost", 65.8, "us", fixed))), "run_cost")
    assert found.word == "below"
    assert found.share == pytest.approx(0.5)


def test_a_row_of_another_shape_is_not_compared() -> None:
    other = gemm(0.1)
    other["parameters"]["K"] = 2048
    assert compare_with_baselines(board(other)) == []


def test_a_clock_that_is_low_explains_a_rate_in_its_proportion() -> None:
    slow = gemm(0.69 * 0.6)
    spread = {"min": 6e8, "median": 6e8, "max": 6e8}
    slow["evidence"]["conditions"] = {"npu_clock_hz": spread, "npu_clock_max_hz": 1e9}
    found = the(compare_with_baselines(board(slow, facts={"npu.governor": "powersave"})))
    assert found.word == "below"
    assert found.explained == pytest.approx((0.6, 0.6))
    assert "600 of 1000 MHz" in found.sentence
    assert "probably" in found.sentence
    page = "\n".join(baseline_lines(board(slow), 100))
    assert "600 of 1000 MHz" in page
    assert "leaves 60%" in page


def test_a_condition_that_explains_a_part_is_not_given_for_the_whole() -> None:
    slow = gemm(0.2)
    spread = {"min": 9e8, "median": 9e8, "max": 9e8}
    slow["evidence"]["conditions"] = {"npu_clock_hz": spread, "npu_clock_max_hz": 1e9}
    sentence = the(compare_with_baselines(board(slow))).sentence
    assert "partly" in sentence
    assert "10% of 71%" in sentence


def test_a_gap_without_a_condition_stays_unexplained() -> None:
    found = the(compare_with_baselines(board(gemm(0.3), facts={"ddr.devfreq_present": True})))
    assert found.explanations == ()
    assert "no condition of this run explains it" in found.sentence


def test_heat_load_and_users_are_named() -> None:
    slow = gemm(0.5)
    slow["evidence"]["conditions"] = {
        "temperature_c": {"soc": {"min": 70, "median": 80, "max": 84}},
        "cooling_state": {"npu": {"min": 0, "median": 1, "max": 2}},
        "foreign_cpus": 3.5,
    }
    report = board(slow, facts={"tenants": [{"name": "frigate", "pid": 7}]})
    words = " / ".join(each.condition for each in the(compare_with_baselines(report)).explanations)
    for word in ("84 C", "cooling device", "3.5 CPUs", "1 other users"):
        assert word in words


def test_cores_that_queue_explain_what_three_contexts_reach() -> None:
    rows = compare_with_baselines(board(scaling(1, 0.66), scaling(3, 0.69)))
    found = next(each for each in rows if each.word == "below")
    assert "do not work side by side" in found.sentence
    assert the([each for each in rows if each.word == "in range"], "core_scaling").measured == 0.66


def test_a_slow_governor_of_the_cpus_does_not_explain_the_arrays_of_the_npu() -> None:
    report = board(
        gemm(0.4), row("run_cost", 60.0, "us", {**INT8, "part": "fixed"}), facts={"cpu.governors": ["ondemand"]}
    )
    rows = compare_with_baselines(report)
    assert "ondemand" not in str(the(rows).explanations)
    assert "ondemand" in str(the(rows, "run_cost").explanations)


def test_memory_figures_hold_without_a_driver_and_npu_figures_do_not() -> None:
    triad = row("cpu_bandwidth", 18.0, "gbps", {"op": "triad", "threads": 1, "cpus": "4"})
    report = board(gemm(0.69), triad, facts={"npu.stack": "none"})
    assert [each.name for each in compare_with_baselines(report)] == ["cpu_bandwidth"]


def test_a_valid_row_is_preferred_and_an_invalid_one_says_so() -> None:
    spoilt, good = gemm(0.9), gemm(0.69)
    spoilt["validity"] = {"valid": False, "reasons": ["hot"]}
    good["parameters"]["AC_layout"] = "native"
    assert the(compare_with_baselines(board(spoilt, good))).measured == 0.69
    found = the(compare_with_baselines(board(spoilt)))
    assert (found.valid, found.reasons) == (False, ("hot",))


def test_the_terminal_page_has_the_section() -> None:
    page = render(board(gemm(0.3)))
    assert "Beside published figures" in page
    assert "marfrit/rk-llama.cpp" in page


@pytest.mark.parametrize(
    ("damage", "word"),
    [
        ({"rows": []}, "rows"),
        ({"soc": []}, "soc"),
        ({"date": "last week"}, "date"),
        ({"source": ""}, "source"),
        (
            {"rows": [{"name": "x", "parameters": {}, "low": 2, "high": 1, "unit": "tops", "reference": True}]},
            "no range",
        ),
    ],
)
def test_a_baseline_that_is_none_is_refused(tmp_path: Path, damage: dict[str, Any], word: str) -> None:
    document = json.loads((FOLDER / "rk3588_campaign.json").read_text(encoding="utf-8"))
    file = tmp_path / "x.json"
    file.write_text(json.dumps({**document, **damage}))
    with pytest.raises(BadBaseline, match=word):
        read_baseline(file)


def test_diff_holds_a_report_against_one_file_of_published_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures, report = tmp_path / "figures.json", tmp_path / "report.json"
    figures.write_bytes((FOLDER / "rk3588_campaign.json").read_bytes())
    report.write_text(json.dumps(board(gemm(0.5))))
    assert main(["diff", str(figures), str(report)]) == 0
    page = " ".join(capsys.readouterr().out.split())
    assert "gemm_rate" in page
    assert "campaign" in page
    assert "slower than published" in page
    assert main(["diff", str(figures), str(report), "--json"]) == 0
    assert {row["baseline"] for row in json.loads(capsys.readouterr().out)} == {json.loads(figures.read_text())["name"]}
    figures.write_text('{"format": "rknpu-kit baseline"}')
    assert main(["diff", str(figures), str(report)]) == 2
    assert "is no baseline" in capsys.readouterr().err
    report.write_text(json.dumps(stored()))
    figures.write_bytes((FOLDER / "rk3588_campaign.json").read_bytes())
    assert main(["diff", str(figures), str(report)]) == 0
    assert "SIMULATED" in capsys.readouterr().out
