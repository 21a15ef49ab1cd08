# SPDX-License-Identifier: Apache-2.0
"""``pytest conformance`` as a person runs it: options, header, JUnit, the section of the report, a hang."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from conformance.runtime.catalogue import CHECKS
from tests.conformance.conftest import ROOT, Suite
from tests.reports_diff.made_reports import stored

SCHEMA = json.loads((ROOT / "reports/schema/capability_report.schema.json").read_text("utf-8"))


def test_the_suite_is_green_on_the_mock_and_says_that_it_is_simulated(suite: Suite, tmp_path: Path) -> None:
    report, junit = tmp_path / "report.json", tmp_path / "junit.xml"
    report.write_text(json.dumps(stored()), "utf-8")
    ended = suite("--report", str(report), f"--junitxml={junit}", "--seed", "7")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    header = ended.stdout.split("conformance level quick, seed 7")[0]
    assert "conformance target: " in header
    assert "SIMULATED" in header
    assert "unexpected pass: int4 B in normal layout can be bound" in ended.stdout
    written = json.loads(report.read_text("utf-8"))
    jsonschema.validate(written, SCHEMA)
    checks = {check["name"]: check for check in written["conformance"]["checks"]}
    assert list(checks) == list(CHECKS)
    assert written["conformance"]["simulated"] is True
    assert written["facts"] == stored()["facts"]
    assert all(check["covered"] for check in checks.values() if check["verdict"] == "passed")
    assert checks["mixed_products"]["verdict"] == "unsupported"
    cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
    assert len(cases) == len(CHECKS)


def test_a_hang_costs_one_verdict_and_junit_is_complete(suite: Suite, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    chosen = ["-k", "int4_products or impossible or transposed", "--deadline", "2", f"--junitxml={junit}"]
    ended = suite(*chosen, faults="hang")
    assert ended.returncode == 1
    assert "int4_products timed-out: a call never returned: no answer within 2 s" in ended.stdout
    found = {case.get("name"): case.find("failure") is not None for case in ElementTree.parse(junit).iter("testcase")}
    assert found == {
        "test_runtime[impossible_requests]": False,
        "test_runtime[int4_products]": True,
        "test_runtime[transposed_b]": True,
    }


def test_a_wrong_runtime_makes_the_suite_red_and_the_message_says_what_should_hold(suite: Suite) -> None:
    ended = suite("-k", "int8_to_int8", faults="wrap")
    assert ended.returncode == 1
    assert "int8 output wraps where it should saturate" in ended.stdout
    assert "What should hold: int8 output saturates at the rim" in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--engine", "npu", "--library", str(ROOT / "pyproject.toml")], 2, "--engine npu uses no library"),
        (["--server", "localhost:8080"], 2, "has to be an address such as http://localhost:8080"),
        (["--server-kv", "f32"], 2, "--server-kv goes with --server"),
        (["--server", "http://localhost:1", "--server-kv", "q9"], 2, "--server-kv q9: one of f32, f16"),
        (["--server-off", "http://localhost:8080"], 2, "--server-off goes with --server"),
        (["--model", str(ROOT / "pyproject.toml")], 2, "--model goes with --engine or --server"),
        (["--library", "/no/such/file"], 2, "/no/such/file: there is no such file"),
        (["--seed", "-1"], 2, "--seed -1: it has to be 0 or more"),
        (["--deadline", "0"], 2, "more than 0 seconds"),
        (["--report", "/no/such/report.json"], 2, "/no/such/report.json does not exist"),
        (["--library", str(ROOT / "pyproject.toml")], 1, "could-not-run"),
    ],
)
def test_a_mistake_of_the_user_is_one_sentence(suite: Suite, arguments: list[str], code: int, said: str) -> None:
    ended = suite("-k", "type_table", *arguments)
    assert ended.returncode == code, ended.stdout + ended.stderr
    assert said in ended.stdout + ended.stderr
    assert "Traceback" not in ended.stdout + ended.stderr
