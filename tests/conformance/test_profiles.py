# SPDX-License-Identifier: Apache-2.0
"""Profiles: every entry has a source, the right file is chosen, refusals are told as known, passes as unexpected."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conformance.profile import FOLDER, BadProfile, profile_for, read_profile
from conformance.runner import Runner
from conformance.target import choose_target
from reports.contract import Verdict


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_shipped_profile_can_be_read_and_is_named_after_its_chip_and_runtime(path: Path) -> None:
    profile = read_profile(path)
    assert path.stem == f"{profile.soc}_{profile.runtime}"
    assert profile.expectations
    assert profile_for(profile.soc, (*map(int, profile.runtime.split(".")), 9)) == profile


def test_a_profile_holds_for_its_chip_and_runtime_alone() -> None:
    assert profile_for("RK3588", (2, 3, 2)) is not None
    assert profile_for("rk3588", (2, 30, 0)) is None
    assert profile_for("rk3588", (1, 7, 0)) is None
    assert profile_for("rk9999", (2, 3, 2)) is None
    assert profile_for(None, (2, 3, 2)) is None
    assert profile_for("rk3588", None) is None


@pytest.mark.parametrize(
    "entry",
    [
        {"what": "type", "value": 1, "expect": "accepted", "source": " "},
        {"what": "type", "value": 1, "expect": "perhaps", "source": "a report"},
        {"what": "colour", "value": 1, "expect": "accepted", "source": "a report"},
        {"what": "type", "expect": "accepted", "source": "a report"},
    ],
)
def test_a_bad_entry_is_refused(tmp_path: Path, entry: dict[str, object]) -> None:
    path = tmp_path / "x_1.0.json"
    path.write_text(json.dumps({"soc": "x", "runtime": "1.0", "cores": 1, "expectations": [entry]}), "utf-8")
    with pytest.raises(BadProfile, match=r"x_1\.0\.json"):
        read_profile(path)


def judged(library: Path, check: str, soc: str, **env: str) -> tuple[Verdict, str, str]:
    target = choose_target(library, env={**os.environ, "RKNN_MOCK_PERSONA": soc})
    with Runner(target, level="quick", seed=1) as runner:
        outcome = runner.run(check, deadline_s=120, env={"RKNN_MOCK_FAULTS": "", **env})
    return outcome.verdict, " ".join(outcome.known), " ".join(outcome.unexpected)


def test_a_known_refusal_is_no_failure_and_is_told(mock_library: Path) -> None:
    verdict, known, unexpected = judged(mock_library, "type_table", "rk3588", RKNN_MOCK_PERSONA="rk3588")
    assert verdict is Verdict.PASSED
    assert "matmul type 5 is refused" in known
    assert unexpected == ""


def test_an_unexpected_pass_is_told_and_is_no_failure(mock_library: Path) -> None:
    verdict, known, unexpected = judged(mock_library, "type_table", "rk3588", RKNN_MOCK_PERSONA="any")
    assert verdict is Verdict.PASSED
    assert "matmul type 5 is accepted, although it is known as refused" in unexpected
    assert known == ""


def test_a_refusal_of_what_is_known_to_work_is_a_failure(mock_library: Path) -> None:
    verdict, _, _ = judged(mock_library, "type_table", "rk3588", RKNN_MOCK_PERSONA="rk3562")
    assert verdict is Verdict.FAILED
