# SPDX-License-Identifier: Apache-2.0
"""Every sample board is found to be what it is, every trouble comes first, and the table in the tree says so."""

from __future__ import annotations

import pytest

from reports.contract import Severity
from tests.board.expected import BOARDS, Board
from tests.board.scenarios import CLEAN, SCENARIOS, Scenario
from tests.board.table import PLACE, Known, shown_first, table


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_sample_board_is_recognised(board: Board, known: Known) -> None:
    sheet, findings = known((board.table,))
    assert not [key for key in sheet if key.startswith("probe.")]
    seen = {
        "soc": sheet.value("soc.name"),
        "stack": sheet.value("npu.stack"),
        "driver": sheet.value("npu.driver_version"),
        "runtime": sheet.value("runtime.version"),
        "cores": sheet.value("npu.cores"),
        "clusters": tuple((len(row["cpus"]), row["core"]) for row in sheet.rows("cpu.clusters")),
        "ddr": (sheet.value("ddr.type"), sheet.value("ddr.theoretical_gbps")),
        "iommu": sheet.value("iommu.mode"),
        "windows": sheet.value("iommu.windows"),
        "node": sheet.value("npu.device_node"),
    }
    assert seen == {key: getattr(board, key) for key in seen}
    assert not [finding for finding in findings if finding.severity is Severity.ERROR]
    assert shown_first(findings) == board.first


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_true_cause_comes_first(scenario: Scenario, known: Known) -> None:
    sheet, findings = known(scenario.tables)
    assert not [key for key in sheet if key.startswith("probe.")]
    codes = [finding.code for finding in findings]
    if scenario.first == CLEAN:
        assert not [finding for finding in findings if finding.severity is not Severity.INFO]
    else:
        assert codes[:1] == [scenario.first]
    assert set(scenario.also) <= set(codes)
    assert not set(scenario.never) & set(codes)
    for finding in findings:
        assert finding.evidence and finding.fix
        texts = (finding.what, finding.why, *finding.fix)
        assert all(text and "None" not in text for text in texts), finding


def test_the_table_in_the_tree_is_what_the_kit_finds(known: Known) -> None:
    assert PLACE.read_text(encoding="utf-8") == table(known), "run: python -m tests.board.table"
