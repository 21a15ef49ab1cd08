# SPDX-License-Identifier: Apache-2.0
"""The matmul runtime, one test for each check of ``conformance/runtime``. Choose with ``-k``: ``-k int8``."""

from __future__ import annotations

import pytest

from conformance.judging import Judge, judge_one
from conformance.runtime.suite import CHECKS


@pytest.mark.parametrize("check", CHECKS)
def test_runtime(check: str, judge: Judge, request: pytest.FixtureRequest) -> None:
    """The check holds."""
    judge_one("runtime", CHECKS[check], judge, request)
