# SPDX-License-Identifier: Apache-2.0
"""The check of shapes, held against the jsonschema package on thousands of damaged reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reports.load import NotAReport, load_report
from reports.shape import SCHEMA, load_schema, misshapen, problems
from tests.hostile_reports.mutations import NUMBERS, OTHERS, TEXTS, paths, replaced
from tests.reports_diff.made_reports import stored

jsonschema = pytest.importorskip("jsonschema")


def small() -> dict[str, Any]:
    report = stored()
    report["facts"] = {key: report["facts"][key] for key in ("soc.name", "cpu.count", "kernel.release")}
    report["measurements"] = [
        {**row, "evidence": {}, "samples": row["samples"][:2]} for row in report["measurements"][:2]
    ]
    return {**report, "findings": report["findings"][:1], "steps": report["steps"][:2]}


def test_it_says_what_jsonschema_says_about_every_damaged_field() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    report, good, bad = small(), 0, 0
    values = (*TEXTS[:3], "", *NUMBERS[:4], 1.0, 0.5, *OTHERS, "passed", "exact", "2026-01-01T00:00:00.000Z")
    for at in list(paths(report))[1:]:
        for value in values:
            damaged = replaced(report, at, value)
            expected = validator.is_valid(damaged)
            assert (problems(damaged, 1) == []) is expected, (at, value)
            good, bad = good + expected, bad + (not expected)
    assert good > 300
    assert bad > 1000


def test_a_missing_key_is_found_where_it_is_missing() -> None:
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    report = small()
    for at in list(paths(report))[1:]:
        if isinstance(at[-1], str):
            holder: Any = replaced(report, at, None)
            for step in at[:-1]:
                holder = holder[step]
            damaged = replaced(report, at, None)
            inner: Any = damaged
            for step in at[:-1]:
                inner = inner[step]
            del inner[at[-1]]
            assert (problems(damaged, 1) == []) is validator.is_valid(damaged), at
            if problems(damaged, 1):
                assert any(at[-1] in what for _, what in problems(damaged)), at


def test_words_of_a_newer_kit_can_still_be_read_but_are_no_valid_report() -> None:
    report = small()
    report["run"]["level"] = "endless"
    report["measurements"][0]["verdict"] = "postponed"
    report["something_new"] = {"a": 1}
    assert misshapen(report) is None
    assert [where for where, _ in problems(report)] == ["/run/level", "/measurements/0/verdict"]


def test_a_schema_with_a_word_that_is_not_understood_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    file.write_text('{"type": "object", "properties": {"a": {"maxItems": 3}}}')
    with pytest.raises(ValueError, match="maxItems"):
        load_schema(file)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": 1e999}', "range"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": ' + "9" * 41 + "}", "digits"),
        ("[" * 49 + "]" * 49, "deeper"),
        ("\ufeff[]", "no capability report"),
        ('{"format": "rknpu-kit capability report", "format_version": true}', "format_version"),
        ('{"format": "rknpu-kit capability report", "format_version": 0}', "format_version"),
        ('{"format": "rknpu-kit capability report", "format_version": 1}', "simulated is missing"),
    ],
)
def test_what_no_reader_could_use_is_refused(tmp_path: Path, text: str, word: str) -> None:
    file = tmp_path / "report.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(NotAReport, match=word):
        load_report(file)


def test_half_characters_become_whole_ones(tmp_path: Path) -> None:
    report = small()
    report["findings"][0]["what"] = "half \ud83d and whole \U0001f600"
    file = tmp_path / "report.json"
    file.write_text(json.dumps(report))
    what = load_report(file)["findings"][0]["what"]
    what.encode("utf-8")
    assert what.startswith("half \ufffd and whole ")
    assert what.endswith("\U0001f600")
