# SPDX-License-Identifier: Apache-2.0
"""The report that is built fits its schema, and the schema refuses what the contract forbids."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from reports.build import SCHEMA_ID, could_not_run, dumps
from reports.contract import Step, Verdict

Report = dict[str, Any]


def valid(schema: Report, report: Report) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(report))


def test_the_schema_is_a_schema(schema: Report) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$id"] == SCHEMA_ID


def test_a_report_of_every_kind_of_record_fits(schema: Report, report: Report) -> None:
    jsonschema.Draft202012Validator(schema).validate(report)
    assert report["simulated"] is True
    assert report["run"]["complete"] is True
    assert report["run"]["exit_code"] == 1
    assert json.loads(dumps(report)) == report


def test_personal_data_is_not_in_a_report(report: Report) -> None:
    assert "0123456789abcdef" not in dumps(report)


def _set(*path: str | int, value: Any) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        target: Any = report
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value

    return change


def _drop(*path: str | int) -> Callable[[Report], None]:
    def change(report: Report) -> None:
        target: Any = report
        for key in path[:-1]:
            target = target[key]
        del target[path[-1]]

    return change


@pytest.mark.parametrize(
    "change",
    [
        _drop("simulated"),
        _set("simulated", value=False),  # with a simulation beside it
        _set("simulation", value=None),  # simulated, and no word of what stood in
        _set("format_version", value=2),
        _set("run", "level", value="deep"),
        _set("run", "started_at", value="yesterday"),
        _set(
            "facts",
            "soc.name",
            value={"value": None, "source": "", "provenance": "read", "reason": None, "needs_root": False},
        ),
        _set(
            "facts",
            "Soc Name",
            value={"value": 1, "source": "", "provenance": "read", "reason": None, "needs_root": False},
        ),
        _set("facts", "soc.name", "provenance", value="guessed"),
        _set("measurements", 0, "median", value="0.69"),
        _set("measurements", 0, "mad", value=-1),
        _set("measurements", 0, "median", value=None),
        _set("measurements", 1, "validity", value={"valid": False, "reasons": []}),
        _set("measurements", 0, "verdict", value="good"),
        _set("measurements", 0, "method", value=""),
        _set("findings", 0, "code", value="E1"),
        _set("findings", 0, "severity", value="fatal"),
        _set("steps", 0, "reason", value=None),
        _set("steps", 1, "covered", value=None),
    ],
)
def test_the_schema_refuses_a_report_that_says_less(
    schema: Report, report: Report, change: Callable[[Report], None]
) -> None:
    broken = copy.deepcopy(report)
    change(broken)
    assert not valid(schema, broken)


def test_unknown_keys_are_welcome(schema: Report, report: Report) -> None:
    report["later"] = {"x": 1}
    report["measurements"][0]["later"] = 1
    report["facts"]["soc.name"]["later"] = 1
    assert valid(schema, report)


def test_a_run_could_not_run_only_if_nothing_was_judged() -> None:
    failed = Step("a", Verdict.FAILED, 0.0, reason="x")
    stuck = Step("b", Verdict.COULD_NOT_RUN, 0.0, reason="x")
    skipped = Step("c", Verdict.SKIPPED, 0.0, reason="x")
    assert could_not_run([stuck, skipped])
    assert not could_not_run([stuck, failed])
    assert not could_not_run([skipped])
    assert not could_not_run([])
