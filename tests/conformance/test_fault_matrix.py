# SPDX-License-Identifier: Apache-2.0
"""Each fault of the mock is caught by a check that names it, and ``conformance/FAULTS.md`` says which."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from c_probes import mock
from conformance.fault_matrix import TABLE, TRIALS, Row, main, render, runners, try_fault
from conformance.runner import Runner
from conformance.runtime.catalogue import CHECKS
from reports.contract import Verdict

_ROW = re.compile(r"^\| `([a-z0-9-]+)`[^|]*\| .* \| ([^|]*) \|$", re.MULTILINE)


def listed() -> dict[str, list[str]]:
    """The checks that the table names for each fault, the abbreviated ones excepted."""
    rows = _ROW.findall(TABLE.read_text("utf-8"))
    return {fault: [word for word in re.findall(r"\w+", cell) if word in CHECKS] for fault, cell in rows}


@pytest.fixture(scope="module")
def made(mock_library: Path) -> Iterator[dict[str, Runner]]:
    by_persona = runners()
    yield by_persona
    for runner in by_persona.values():
        runner.close()


def test_every_fault_of_the_mock_is_tried(mock_library: Path) -> None:
    assert {fault.name for fault in mock.faults(mock_library)} == set(TRIALS)


@pytest.mark.parametrize("fault", TRIALS)
def test_a_fault_is_named_by_the_checks_that_the_table_lists(fault: str, made: dict[str, Runner]) -> None:
    checks = listed()[fault][:2]
    assert checks, "the table lists no check"
    assert set(checks) <= set(CHECKS)
    trial = TRIALS[fault]
    row = try_fault(made[trial.persona], fault, trial, checks[:1] if trial.only else checks)
    assert row.named, [*row.caught, *row.others]
    assert not row.caught
    assert not row.others


@pytest.mark.parametrize("fault", ["wrap", "nibble-order", "fd-leak", "small-f16-zero", "fd-offset-ignored"])
def test_a_narrow_fault_leaves_the_other_checks_green(fault: str, made: dict[str, Runner]) -> None:
    others = [name for name in CHECKS if name not in listed()[fault]]
    row = try_fault(made["rk3588"], fault, TRIALS[fault], others[::6])
    assert not row.named
    assert not row.caught
    assert all(outcome.verdict in (Verdict.PASSED, Verdict.UNSUPPORTED) for outcome in row.others), row.others


@pytest.mark.parametrize("arguments", [["--only", "no-such-fault"], ["--write", "--only", "wrap"]])
def test_a_mistake_of_the_maintainer_leaves_the_table_alone(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = TABLE.read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "fault" in capsys.readouterr().err
    assert TABLE.read_bytes() == before


def test_the_table_is_what_the_generator_writes(mock_library: Path) -> None:
    text = TABLE.read_text("utf-8")
    cells = dict(_ROW.findall(text))
    rows = []
    for fault in TRIALS:
        names = listed()[fault]
        more = re.search(r"and (\d+) more", cells[fault])
        rest = [name for name in CHECKS if name not in names][: int(more[1])] if more else []
        rows.append(Row(fault, named=names + rest))
    assert render(rows) == text
