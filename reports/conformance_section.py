# SPDX-License-Identifier: Apache-2.0
"""The section ``conformance`` of a report: its checks by suite, and two sections as one. Pure.

A section written before there was more than the suite ``runtime`` names no suite and no targets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reports.contract import Verdict

Section = Mapping[str, Any]
Check = Mapping[str, Any]

FAULTS = tuple(word.value for word in (Verdict.FAILED, Verdict.CRASHED, Verdict.TIMED_OUT))
"""How a check ends that found a fault of what it judged."""

UNTOLD = tuple(word.value for word in (Verdict.UNSUPPORTED, Verdict.SKIPPED))
"""How a check ends that says nothing about right or wrong."""


def suite_of(check: Check) -> str:
    """The suite of a check."""
    return str(check.get("suite") or "runtime")


def checks_of(report: Mapping[str, Any]) -> list[Check]:
    """The checks of a report's section, none where it has no section."""
    section = report.get("conformance")
    checks = section.get("checks") if isinstance(section, dict) else None
    return [check for check in checks if isinstance(check, dict)] if isinstance(checks, list) else []


def by_name(checks: Iterable[Check]) -> dict[tuple[str, str], Check]:
    """Checks by suite and name."""
    return {(suite_of(check), str(check.get("name"))): check for check in checks}


def titled(check: Check) -> str:
    """The name of a check, with its suite where that is not ``runtime``."""
    suite, name = suite_of(check), str(check.get("name"))
    return name if suite == "runtime" else f"{suite}: {name}"


def targets_of(section: Section) -> list[Mapping[str, Any]]:
    """What was judged, one for each suite; made from the library where the section names no targets."""
    targets: list[Mapping[str, Any]] = [target for target in section.get("targets") or () if isinstance(target, dict)]
    if targets or not section.get("checks"):
        return targets
    version = (section.get("library") or {}).get("version")
    return [
        {"suite": "runtime", "target": version, **{key: section.get(key) for key in ("simulated", "level", "seed")}}
    ]


def joined(old: Section | None, new: dict[str, Any]) -> dict[str, Any]:
    """The new section with the suites of the old one that were not judged anew."""
    fresh = {str(target["suite"]) for target in targets_of(new)}
    held: Section = old or {}
    checks = [check for check in held.get("checks") or () if suite_of(check) not in fresh]
    if not checks:
        return new
    kept = {suite_of(check) for check in checks}
    targets = [dict(target) for target in targets_of(held) if target.get("suite") in kept]
    return {
        **new,
        "simulated": bool(new["simulated"] or held.get("simulated", True)),
        "soc": new["soc"] or held.get("soc"),
        "library": new["library"] or held.get("library"),
        "targets": targets + [dict(target) for target in targets_of(new)],
        "checks": checks + new["checks"],
    }
