# SPDX-License-Identifier: Apache-2.0
"""One entry of the catalogue of findings."""

from __future__ import annotations

from dataclasses import dataclass

from reports.contract import Finding, Severity


@dataclass(frozen=True)
class Entry:
    """Fixed texts of one finding. ``what``, ``why`` and ``fix`` are ``str.format`` templates over named values.

    ``rank`` orders findings by likely cause: a finding that explains others has a lower rank than those it explains.
    0-99 nothing can work without this (access, flavour, device), 100-199 versions, 200-299 memory and limits,
    300-399 conditions of speed, 400-499 results, 900- notes.
    """

    code: str
    severity: Severity
    what: str
    why: str
    fix: tuple[str, ...]
    rank: int

    def finding(self, evidence: str, **values: object) -> Finding:
        return Finding(
            code=self.code,
            severity=self.severity,
            what=self.what.format(**values),
            why=self.why.format(**values),
            fix=tuple(line.format(**values) for line in self.fix),
            evidence=evidence,
            rank=self.rank,
        )
