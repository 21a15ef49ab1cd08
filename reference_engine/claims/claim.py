# SPDX-License-Identifier: Apache-2.0
"""What a claim is, and what an experiment on it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

HOLDS, REFUTED, UNDECIDED = "holds", "refuted", "not decidable here"


@dataclass(frozen=True)
class Verdict:
    """``word`` is one of HOLDS, REFUTED, UNDECIDED; ``reason`` one sentence with the figures that decided."""

    word: str
    reason: str


@dataclass(frozen=True)
class Claim:
    """``source``: who says so. ``test`` does the experiment; it takes no time that would mean anything."""

    name: str
    text: str
    source: str
    test: Callable[[], Verdict]


def decided(holds: bool, reason: str) -> Verdict:
    return Verdict(HOLDS if holds else REFUTED, reason)
