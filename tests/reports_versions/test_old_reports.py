# SPDX-License-Identifier: Apache-2.0
"""Reports of every format version that ever was stay readable: one stored run of the mock for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.__main__ import main
from reports.contract import FORMAT_VERSION
from reports.load import load_report
from reports.validate import validate

HERE = Path(__file__).parent


def test_there_is_a_sample_of_every_format_version() -> None:
    assert sorted(path.name for path in HERE.glob("format_*.json")) == [
        f"format_{version}.json" for version in range(1, FORMAT_VERSION + 1)
    ]


@pytest.mark.parametrize("version", range(1, FORMAT_VERSION + 1))
def test_a_stored_report_is_read_shown_and_compared(version: int, capsys: pytest.CaptureFixture[str]) -> None:
    path = HERE / f"format_{version}.json"
    report = load_report(path)
    assert report["format_version"] == version
    assert len(report["measurements"]) > 20
    assert len(report["facts"]) > 100
    for command in (["show", str(path)], ["show", str(path), "--markdown"], ["export", str(path), "--ktap"]):
        assert main(command) == 0
        out = capsys.readouterr().out
        assert "SIMULATED" in out
        assert "int8_int8_int32" in out or "i8*i8>i32" in out
    assert main(["diff", str(path), str(path)]) == 0
    assert "no change" in capsys.readouterr().out


def test_the_stored_report_of_this_version_has_no_flaw() -> None:
    assert validate(load_report(HERE / f"format_{FORMAT_VERSION}.json")) == []
