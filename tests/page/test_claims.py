# SPDX-License-Identifier: Apache-2.0
"""The claims: each can hold, fail and go unmeasured, and a wrong result decides none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reports.page_claims import ClaimRow, claim_rows
from tests.page.sample_reports import Report, as_saved, bare_report, board_report, mock_report

Change = Callable[[dict[str, Any]], None]


def _set(**values: Any) -> Change:
    return lambda row: row.update(values)


def _evidence(**values: Any) -> Change:
    return lambda row: row["evidence"].update(values)


# Words of the claim; the rows that decide it; what to change in them to turn it round.
CASES: tuple[tuple[str, str, dict[str, Any], Change], ...] = (
    ("Layout of B", "gemm_rate", {"B_layout": "norm"}, _set(median=0.5)),
    ("int8 is fast up to K = 8192", "shape_limit", {"type": 2}, _set(median=4096.0)),
    ("takes no lock", "core_scaling_fit", {}, _evidence(verdict="one after the other")),
    ("about a third of the rated", "core_scaling", {"contexts": 3}, _evidence(share_of_rated=0.6)),
    ("One context uses one core", "core_mask", {"core_mask": 7}, _evidence(against_mask_1=2.7)),
    ("does not poll", "run_cost", {"part": "cpu_use"}, _set(median=0.05)),
    ("bus is not free", "contention", {}, _set(median=1.0)),
    ("int4 multiplies no faster", "gemm_ceiling", {"type": 10}, _set(median=3.7)),
    ("Binding a native B", "run_cost", {"part": "bind", "B_layout": "native"}, _set(median=180.0)),
    ("about 55 %", "npu_stream_share", {}, _set(median=0.9)),
)


def verdict(report: Report, words: str) -> ClaimRow:
    return next(claim for claim in claim_rows(report) if words in claim.text)


def matching(report: Report, name: str, wanted: dict[str, Any]) -> list[dict[str, Any]]:
    rows = [row for row in report["measurements"] if row["name"] == name]
    return [row for row in rows if all(row["parameters"].get(key) == value for key, value in wanted.items())]


def test_every_claim_is_in_the_table_of_cases() -> None:
    texts = [claim.text for claim in claim_rows(as_saved(board_report()))]
    assert len(texts) == len(CASES)
    assert all(any(words in text for words, _, _, _ in CASES) for text in texts)


@pytest.mark.parametrize(("words", "name", "wanted", "change"), CASES, ids=[case[0] for case in CASES])
def test_a_claim_turns_with_the_row_that_decides_it(
    words: str, name: str, wanted: dict[str, Any], change: Change
) -> None:
    report = as_saved(board_report())
    before = verdict(report, words)
    assert before.verdict == ("does not hold here" if words == "does not poll" else "holds here")
    for row in matching(report, name, wanted):
        change(row)
    after = verdict(report, words)
    assert {before.verdict, after.verdict} == {"holds here", "does not hold here"}
    assert after.anchors


@pytest.mark.parametrize(("words", "name"), [(case[0], case[1]) for case in CASES], ids=[case[0] for case in CASES])
def test_a_wrong_result_decides_no_claim(words: str, name: str) -> None:
    report = as_saved(board_report())
    for row in matching(report, name, {}):
        row["verdict"] = "failed"
    found = verdict(report, words)
    assert found.verdict == "not measured"
    assert name.removesuffix("_fit") in found.shown


def test_nothing_measured_decides_nothing() -> None:
    assert {claim.verdict for claim in claim_rows(as_saved(bare_report()))} == {"not measured"}


def test_a_claim_from_a_row_that_was_not_valid_says_so() -> None:
    report = as_saved(board_report())
    assert verdict(report, "bus is not free").valid
    matching(report, "contention", {})[0]["validity"] = {"valid": False, "reasons": ["noisy"]}
    assert not verdict(report, "bus is not free").valid


def test_a_claim_that_the_mock_decided_names_the_mock() -> None:
    assert verdict(as_saved(mock_report()), "takes no lock").verdict == "holds on the mock"


def test_anchors_lead_to_the_rows_that_decided() -> None:
    report = as_saved(board_report())
    for anchor in verdict(report, "Binding a native B").anchors:
        row = report["measurements"][int(anchor.removeprefix("row-"))]
        assert (row["name"], row["parameters"]["part"]) == ("run_cost", "bind")
