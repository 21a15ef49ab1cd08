# SPDX-License-Identifier: Apache-2.0
"""``fleet`` finds the board that stands out, compares like with like, and writes records any reader can take."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.fleet import COLUMNS, Board, as_csv, as_json_lines, cell, outliers, records
from tests.reports_diff.made_reports import noisy, set_samples, timed_rows

ROW = timed_rows()[0]


def boards(count: int = 8, soc: str = "RK3588") -> list[Board]:
    made = []
    for index in range(count):
        report = noisy(index, noise=0.01)
        report["facts"]["soc.name"].update(value=soc, reason=None)
        report["facts"]["board.model"].update(value=f"Board {index}", reason=None)
        made.append(Board(f"{soc}-{index}.json", report))
    return made


def slow(board: Board, share: float = 0.8) -> dict[str, Any]:
    row: dict[str, Any] = board.report["measurements"][ROW]
    set_samples(row, [value * share for value in row["samples"]])
    return row


def test_boards_alike_have_no_outlier() -> None:
    assert outliers(boards(20)) == []


def test_the_one_slow_row_of_the_one_slow_board_stands_out() -> None:
    fleet = boards()
    row = slow(fleet[3])
    (found,) = outliers(fleet)
    assert (found.file, found.name, found.parameters) == ("RK3588-3.json", row["name"], row["parameters"])
    assert found.z < -3.5
    assert found.value == row["median"]
    assert found.typical == pytest.approx(row["median"] / 0.8, rel=0.02)


def test_nothing_stands_out_among_few_boards_or_boards_of_another_soc() -> None:
    few = boards(4)
    slow(few[0], 0.5)
    assert outliers(few) == []
    fleet = boards(8)
    stranger = boards(1, soc="RK3576")[0]
    slow(stranger, 0.5)
    assert outliers([*fleet, stranger]) == []


def test_rows_under_bad_conditions_do_not_stand_out() -> None:
    fleet = boards()
    slow(fleet[3])["validity"] = {"valid": False, "reasons": ["hot"]}
    assert outliers(fleet) == []


def test_every_record_has_every_column_in_its_type() -> None:
    fleet = boards()
    row = slow(fleet[3])
    row["parameters"]["M"] = "many"
    lines = [json.loads(line) for line in as_json_lines(fleet).splitlines()]
    assert len(lines) == sum(len(board.report["measurements"]) for board in fleet)
    kinds = dict(COLUMNS)
    for line in lines:
        assert list(line) == list(kinds)
        for name, value in line.items():
            assert value is None or type(value) is kinds[name], (name, value)
    assert {line["M"] for line in lines if line["file"] == "RK3588-3.json"} & {None}
    wanted = [each["median"] for board in fleet for each in board.report["measurements"]]
    assert [line["median"] for line in lines] == wanted


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "  =1", "\t=1", "|x", "%x"])
def test_no_text_is_a_formula_and_numbers_stay_numbers(text: str) -> None:
    assert str(cell(text)).startswith("'")
    assert cell(-1.5) == -1.5
    fleet = boards(1)
    fleet[0].report["facts"]["board.model"]["value"] = text
    fleet[0].report["measurements"][ROW]["median"] = -1.5
    rows = list(csv.DictReader(io.StringIO(as_csv(fleet))))
    assert {row["board"] for row in rows} == {"'" + text.replace("\t", " ")}
    assert rows[ROW]["median"] == "-1.5"


def test_csv_and_records_agree() -> None:
    fleet = boards(2)
    rows = list(csv.DictReader(io.StringIO(as_csv(fleet))))
    for row, record in zip(rows, records(fleet), strict=True):
        assert row["name"] == record["name"]
        assert (float(row["median"]) if row["median"] else None) == record["median"]


def test_the_command_shows_boards_names_what_is_no_report_and_fails_on_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fleet", str(tmp_path)]) == 3
    (tmp_path / "rack").mkdir()
    fleet = boards(6)
    slow(fleet[2])
    for board in fleet:
        (tmp_path / "rack" / board.file).write_text(json.dumps(board.report))
    (tmp_path / "notes.json").write_text("{}")
    capsys.readouterr()
    assert main(["fleet", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "notes.json" in said.err
    assert said.err.count("\n") == 1
    assert "6 boards, 1 measurements stand out" in said.out
    assert "rack/RK3588-2.json: gemm_rate" in said.out
    assert main(["fleet", str(tmp_path), "--csv"]) == 0
    assert len(list(csv.DictReader(io.StringIO(capsys.readouterr().out)))) == 6 * len(fleet[0].report["measurements"])
    assert main(["fleet", str(tmp_path / "none")]) == 2
