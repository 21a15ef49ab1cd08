# SPDX-License-Identifier: Apache-2.0
"""Checks of the conformance suite in two reports beside each other: which of them changed their verdict. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from reports.conformance_section import FAULTS, by_name, checks_of, suite_of

_ORDER = ("broke", "came", "changed", "mended", "went")


@dataclass(frozen=True)
class CheckChange:
    """``word``: broke, mended, changed, came, went. ``before`` and ``after`` are verdicts, None where not judged."""

    suite: str
    name: str
    word: str
    before: str | None
    after: str | None
    why: str | None

    @property
    def rises(self) -> bool:
        """Whether a fault is found that the report before did not tell."""
        return self.after in FAULTS and self.before not in FAULTS


def compare_checks(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[CheckChange]:
    """What changed. A suite that one report does not hold says nothing, but for the faults that the later one tells."""
    old, new = by_name(checks_of(before)), by_name(checks_of(after))
    shared = {suite for suite, _ in old} & {suite for suite, _ in new}
    changes = []
    for key in dict.fromkeys([*new, *old]):
        one, other = (side[key].get("verdict") if key in side else None for side in (old, new))
        if one == other or (key[0] not in shared and other not in FAULTS):
            continue
        why = new[key].get("reason") if key in new else None
        changes.append(CheckChange(*key, _word(one, other), one, other, why))
    return sorted(changes, key=lambda change: (_ORDER.index(change.word), change.suite, change.name))


def check_notes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Suites that one report alone holds."""
    first, second = ({suite_of(check) for check in checks_of(report)} for report in (before, after))
    alone = [("first", suite) for suite in sorted(first - second)] + [
        ("second", suite) for suite in sorted(second - first)
    ]
    return [f"Conformance of suite {suite} stands in the {word} report alone." for word, suite in alone]


def _word(before: str | None, after: str | None) -> str:
    if before is None:
        return "came"
    if after is None:
        return "went"
    if after in FAULTS and before not in FAULTS:
        return "broke"
    return "mended" if before in FAULTS and after not in FAULTS else "changed"
