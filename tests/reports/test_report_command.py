# SPDX-License-Identifier: Apache-2.0
"""``python -m reports show``: a saved report shows the same page; anything else gets one sentence and exit code 2."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.__main__ import main
from reports.build import dumps
from reports.page_facts import fact_text
from reports.terminal import render


def test_a_saved_report_shows_its_page(
    tmp_path: Path, report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    file.write_text(dumps(report))
    assert main(["show", str(file)]) == 0
    assert capsys.readouterr().out == render(report)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"[]", "no capability report"),
        (b'{"format": "something else"}', "no capability report"),
        (b'{"format": "rknpu-kit capability report", "format_version": 99}', "format_version 99"),
        (b'{"format": "rknpu-kit capability report", "format_version": "1"}', "format_version"),
        (b'{"format": "rknpu-kit capability report", "format_version": NaN}', "not JSON"),
    ],
)
def test_what_is_no_report_is_refused_in_one_sentence(
    tmp_path: Path, content: bytes, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(content)
    assert main(["show", str(file)]) == 2
    err = capsys.readouterr().err
    assert word in err
    assert err.count("\n") == 1


def test_a_missing_report_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(tmp_path / "none.json")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_facts_of_any_shape_have_a_line() -> None:
    values: tuple[Any, ...] = (1, 1.5, "x", True, [], {}, [1], [{"a": 1}], [None], {"a": []})
    for value in values:
        for kind in ("plain", "hertz", "bytes", "gbps", "celsius", "clusters", "tenants", "libraries"):
            lines = fact_text({"value": value, "provenance": "read"}, kind)
            assert lines
            assert all(isinstance(line, str) for line in lines)


def test_an_unknown_fact_says_why_and_whether_root_would_help() -> None:
    fact = {"value": None, "reason": "permission denied", "needs_root": True}
    assert fact_text(fact, "plain") == ["unknown: permission denied (root could read it)"]


def test_an_assumed_fact_is_marked() -> None:
    assert fact_text({"value": 3, "provenance": "assumed"}, "plain") == ["3 (assumed)"]


def test_clusters_and_libraries_read_like_a_sentence() -> None:
    cluster = {"cpus": [4, 5], "core": "Cortex-A76", "hardware_max_hz": 2256000000, "governor": "ondemand"}
    assert fact_text({"value": [cluster], "provenance": "read"}, "clusters") == [
        "2 x Cortex-A76 (cpu 4-5), up to 2256 MHz, governor ondemand"
    ]
    library = {"path": "/usr/lib/librknnrt.so", "version_text": "librknnrt version: 2.3.2 (x)", "taken": True}
    assert fact_text({"value": [library], "provenance": "read"}, "libraries") == [
        "/usr/lib/librknnrt.so: librknnrt version: 2.3.2 (x) [the loader takes this one]"
    ]
    json.dumps(library)
