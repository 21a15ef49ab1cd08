# SPDX-License-Identifier: Apache-2.0
"""This kit's engine, one test for each check of ``conformance/engine``. Choose with ``-k``: ``-k quantiser``."""

from __future__ import annotations

import pytest

from conformance.engine.suite import CHECKS
from conformance.judging import Judge, judge_one


@pytest.mark.parametrize("check", CHECKS)
def test_engine(check: str, judge: Judge, request: pytest.FixtureRequest) -> None:
    """The check holds."""
    judge_one("engine", CHECKS[check], judge, request)
