# SPDX-License-Identifier: Apache-2.0
"""The engine's suite can fail: each fault is caught by the check that the table says, in words that name it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.engine.fault_table import TABLE, Row, engine_runner, named_by, render, try_fault
from conformance.engine.faults import FAULTS, VARIABLE, UnknownFault, fault_of
from conformance.engine.suite import CHECKS
from conformance.runner import Runner
from conformance.subjects import EngineSubject
from conformance.target import choose_target
from reports.contract import Verdict
from tests.mock.mock_client import BUILD


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with engine_runner() as made:
        yield made


def test_the_table_has_every_fault_and_a_check_for_each() -> None:
    found = named_by()
    assert list(found) == list(FAULTS)
    assert set(found.values()) <= set(CHECKS)


@pytest.mark.parametrize("fault", list(FAULTS))
def test_each_fault_is_caught_by_the_check_that_names_it(runner: Runner, fault: str) -> None:
    check = named_by()[fault]
    row = try_fault(runner, fault, [check])
    assert row.named == [check], (row.example, row.caught, row.broken)


def test_a_fault_that_no_check_names_is_none_in_the_table(tmp_path: Path) -> None:
    table = tmp_path / "t.md"
    table.write_text(render([Row("noise", [], ["goldens"]), Row("flush", ["quantiser_subnormal"])]))
    assert named_by(table) == {"noise": "none", "flush": "quantiser_subnormal"}
    assert TABLE.read_text().splitlines()[:9] == table.read_text().splitlines()[:9]


def test_without_a_name_there_is_no_fault_and_a_wrong_one_is_refused() -> None:
    assert fault_of({}) is None
    assert fault_of({VARIABLE: ""}) is None
    with pytest.raises(UnknownFault, match="there are half-up, "):
        fault_of({VARIABLE: "nothing"})


@pytest.mark.parametrize(("fault", "words"), [("off-by-one", "device's product differs"), ("crash", "SIGSEGV")])
def test_a_fault_of_the_device_is_a_finding_on_the_matmul(fault: str, words: str) -> None:
    library = choose_target(Path(BUILD) / "mock" / "librknnrt.so", env={"RKNN_MOCK_PERSONA": "rk3588"})
    with Runner(EngineSubject("device", None, library), level="quick", seed=1) as made:
        outcome = made.run("matmul_device", deadline_s=120, env={"RKNN_MOCK_FAULTS": fault})
    assert outcome.verdict is Verdict.FAILED
    assert words in (outcome.reason or "")
    assert ".weight" in (outcome.reason or "")
