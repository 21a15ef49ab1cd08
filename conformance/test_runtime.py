# SPDX-License-Identifier: Apache-2.0
"""The matmul runtime, one test for each check of ``conformance/runtime``. Choose with ``-k``: ``-k int8``."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from conformance.results import PROPERTY, as_text
from conformance.runner import Outcome
from conformance.runtime.catalogue import CHECKS
from reports.contract import Verdict


@pytest.mark.parametrize("check", CHECKS)
def test_runtime(check: str, judge: Callable[[str], Outcome], request: pytest.FixtureRequest) -> None:
    """The check holds for the library under test, in a child of its own, within its deadline."""
    outcome = judge(check)
    request.node.user_properties.append((PROPERTY, as_text(outcome)))
    if outcome.verdict is Verdict.UNSUPPORTED:
        pytest.skip(outcome.reason or "not offered")
    if outcome.verdict is not Verdict.PASSED:
        held = CHECKS[check].purpose
        pytest.fail(f"{check} {outcome.verdict.value}: {outcome.reason}\nWhat should hold: {held}", pytrace=False)
