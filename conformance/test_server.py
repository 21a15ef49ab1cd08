# SPDX-License-Identifier: Apache-2.0
"""A service over HTTP, one test for each check of ``conformance/server``. Choose with ``-k``: ``-k greedy``."""

from __future__ import annotations

import pytest

from conformance.judging import Judge, judge_one
from conformance.server.suite import CHECKS


@pytest.mark.parametrize("check", CHECKS)
def test_server(check: str, judge: Judge, request: pytest.FixtureRequest) -> None:
    """The check holds."""
    judge_one("server", CHECKS[check], judge, request)
