# SPDX-License-Identifier: Apache-2.0
"""What the test of one check does, the same for every suite."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.bench import Check
from conformance.results import PROPERTY, as_text
from conformance.runner import Outcome
from reports.contract import Verdict

Judge = Callable[[str, Check], Outcome]
"""Runs a check of a suite: the name of the suite, the check."""


def judge_one(suite: str, check: Check, judge: Judge, request: pytest.FixtureRequest) -> None:
    """The check holds for what is judged, in a child of its own, within its deadline."""
    outcome = judge(suite, check)
    request.node.user_properties.append((PROPERTY, as_text(outcome)))
    if outcome.verdict is Verdict.UNSUPPORTED:
        pytest.skip(outcome.reason or "not offered")
    if outcome.verdict is not Verdict.PASSED:
        told = f"{check.name} {outcome.verdict.value}: {outcome.reason}\nWhat should hold: {check.purpose}"
        pytest.fail(told, pytrace=False)
