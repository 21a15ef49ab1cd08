# SPDX-License-Identifier: Apache-2.0
"""All troubles that the tests know."""

from __future__ import annotations

from tests.board.bringup import VERDICTS
from tests.board.reported import TIER3
from tests.board.trouble import CLEAN, Scenario

__all__ = ["CLEAN", "SCENARIOS", "TIER3", "VERDICTS", "Scenario"]

SCENARIOS = (*TIER3, *VERDICTS)
