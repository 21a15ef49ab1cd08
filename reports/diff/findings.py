# SPDX-License-Identifier: Apache-2.0
"""Findings of two reports beside each other: which came, which went, which weigh more or less than before."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Finding = dict[str, Any]
WEIGHT = {"info": 0, "warning": 1, "error": 2}
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


@dataclass(frozen=True)
class FindingChange:
    """``word``: came, went, graver, milder. ``finding`` is that of the newer report, or the one that went."""

    word: str
    finding: Finding

    @property
    def rises(self) -> bool:
        """Whether this makes the board's state worse: a warning or an error that was not there, or weighs more."""
        return self.word in ("came", "graver") and WEIGHT.get(str(self.finding.get("severity")), 2) > 0


def compare_findings(before: Sequence[Finding], after: Sequence[Finding]) -> list[FindingChange]:
    """Findings are the same when their code and text are, or when their texts differ in numbers only."""
    old, new = _by_code(before), _by_code(after)
    changes = []
    for code in dict.fromkeys([*new, *old]):
        pairs, gone, come = _matched(old.get(code, []), new.get(code, []))
        changes += [FindingChange("came", finding) for finding in come]
        changes += [FindingChange("went", finding) for finding in gone]
        for one, other in pairs:
            step = WEIGHT.get(str(other.get("severity")), 2) - WEIGHT.get(str(one.get("severity")), 2)
            if step:
                changes.append(FindingChange("graver" if step > 0 else "milder", other))
    order = ("came", "graver", "milder", "went")
    return sorted(changes, key=lambda change: (order.index(change.word), -WEIGHT.get(_severity(change), 2)))


def _severity(change: FindingChange) -> str:
    return str(change.finding.get("severity"))


def _by_code(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        found[str(finding.get("code"))].append(finding)
    return found


def _matched(
    old: list[Finding], new: list[Finding]
) -> tuple[list[tuple[Finding, Finding]], list[Finding], list[Finding]]:
    pairs: list[tuple[Finding, Finding]] = []
    for same in (_exact, _but_for_numbers):
        waiting: dict[str, list[Finding]] = defaultdict(list)
        for finding in old:
            waiting[same(finding)].append(finding)
        left = []
        for finding in new:
            mates = waiting[same(finding)]
            if mates:
                pairs.append((mates.pop(0), finding))
            else:
                left.append(finding)
        old, new = [finding for mates in waiting.values() for finding in mates], left
    return pairs, old, new


def _exact(finding: Finding) -> str:
    return str(finding.get("what"))


def _but_for_numbers(finding: Finding) -> str:
    return _NUMBER.sub("#", str(finding.get("what")))
