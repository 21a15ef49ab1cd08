# SPDX-License-Identifier: Apache-2.0
"""What the facts mean: ``judge(sheet)`` gives the findings, the most likely cause first.

Each rule is a small pure function of the fact sheet; the texts stand in ``reports/catalogue``. A rule stays silent
where its facts are unknown. Ranking: access before driver, driver flavour before versions, versions before conditions;
a harmless line of the kernel log is never more than a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from probes.facts.sheet import FactSheet
from probes.findings import access, kernel, klog, memory, speed, versions
from reports.contract import Finding, by_cause

__all__ = ["judge"]

Rule = Callable[[FactSheet], Iterator[Finding]]
RULES: tuple[Rule, ...] = (*access.RULES, *kernel.RULES, *klog.RULES, *versions.RULES, *memory.RULES, *speed.RULES)


def judge(sheet: FactSheet) -> list[Finding]:
    """All findings of ``sheet``, sorted by cause. Pure: the same sheet gives the same list."""
    found = [finding for rule in RULES for finding in rule(sheet)]
    return sorted(found, key=by_cause)
