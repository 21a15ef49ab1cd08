# SPDX-License-Identifier: Apache-2.0
"""The checks of time: right on a mock that models time, silent on one that does not, blind to no fault of speed.

That each fault of speed is caught is the fault matrix' test. Every bound here compares minima, so load on this machine
does not decide; :mod:`conformance.runtime.speed` says why.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from c_probes import mock
from conformance.fault_matrix import TIME
from conformance.runner import Outcome, Runner
from conformance.runtime.speed import FAULTS_OF_SPEED
from conformance.target import choose_target
from reports.contract import Verdict


def judged(library: Path, checks: tuple[str, ...], persona: str, **env: str) -> dict[str, Outcome]:
    env = {"RKNN_MOCK_PERSONA": persona, "RKNN_MOCK_FAULTS": "", **env}
    with Runner(choose_target(library, env=env), level="quick", seed=1) as runner:
        return {check: runner.run(check, deadline_s=120, env=env) for check in checks}


@pytest.mark.parametrize("persona", ["rk3588", "rk3562"])
def test_time_is_right_on_a_mock_that_models_it(mock_library: Path, persona: str) -> None:
    found = judged(mock_library, TIME, persona, RKNN_MOCK_TIMING="on")
    assert {check: outcome.reason for check, outcome in found.items() if outcome.verdict is Verdict.FAILED} == {}
    alone = {"contexts_speed_up", "published_speed"} if persona == "rk3562" else set()
    assert {check for check, outcome in found.items() if outcome.verdict is Verdict.UNSUPPORTED} == alone


def test_the_known_cliff_of_rk3588_is_told_and_no_failure(mock_library: Path) -> None:
    outcome = judged(mock_library, ("k_cliff_time",), "rk3588", RKNN_MOCK_TIMING="on")["k_cliff_time"]
    assert outcome.verdict is Verdict.PASSED
    assert "slow above K = 4096" in " ".join(outcome.known)


def test_time_is_not_judged_where_the_mock_does_not_model_it(mock_library: Path) -> None:
    found = judged(mock_library, TIME, "rk3588", RKNN_MOCK_TIMING="off")
    assert {outcome.verdict for outcome in found.values()} == {Verdict.UNSUPPORTED}


def test_the_faults_that_switch_time_on_are_those_of_the_mock(mock_library: Path) -> None:
    assert set(FAULTS_OF_SPEED) < {fault.name for fault in mock.faults(mock_library)}
