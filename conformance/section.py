# SPDX-License-Identifier: Apache-2.0
"""The section ``conformance`` of a capability report: what was judged, how each check ended, in one place."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from conformance.options import Options
from conformance.runner import Outcome
from conformance.subjects import EngineSubject, Subject
from conformance.target import Target
from reports.build import dumps
from reports.conformance_section import joined
from reports.contract import FORMAT
from reports.redact import redact


class CannotWrite(Exception):
    """The report cannot be read or written; the message says why and what to do."""


def section(subjects: Mapping[str, Subject], options: Options, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """JSON of a run. Every check has ``covered`` (a pass) or ``reason`` (anything else)."""
    target = next((library for subject in subjects.values() if (library := _library(subject)) is not None), None)
    return {
        "simulated": any(subject.simulated for subject in subjects.values()),
        "soc": None if target is None else target.soc,
        "level": options.level,
        "seed": options.seed,
        "library": None
        if target is None
        else {
            "path": str(target.path),
            "version": target.version,
            "sha256": target.sha256,
            "mock": target.mock,
        },
        "targets": [
            {
                "suite": suite,
                "target": subject.header.removeprefix("target: "),
                "simulated": subject.simulated,
                "level": options.level,
                "seed": options.seed,
            }
            for suite, subject in subjects.items()
        ],
        "checks": [
            {
                "suite": outcome.suite,
                "name": outcome.check,
                "verdict": outcome.verdict.value,
                "duration_s": round(outcome.seconds, 6),
                "covered": outcome.covered,
                "reason": outcome.reason,
                "known_refusals": list(outcome.known),
                "unexpected_passes": list(outcome.unexpected),
            }
            for outcome in outcomes
        ],
    }


def _library(subject: Subject) -> Target | None:
    if isinstance(subject, EngineSubject):
        return subject.library
    return subject if isinstance(subject, Target) else None


def read_report(path: Path) -> dict[str, Any]:
    """The capability report at ``path``. Raises :class:`CannotWrite` for anything else."""
    try:
        report = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise CannotWrite(
            f"{path} does not exist; make probe writes a capability report, which this run adds to."
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise CannotWrite(f"{path} cannot be read as a capability report: {error}") from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise CannotWrite(f"{path} is no capability report; make probe writes one.")
    return report


def write_section(path: Path, what: dict[str, Any]) -> None:
    """Puts the section into the report at ``path``, all or nothing. Raises :class:`CannotWrite`.

    A report without personal data stays one: paths and addresses of what was judged may name people.
    """
    report = read_report(path)
    whole = {"conformance": joined(report.get("conformance"), what)}
    report |= redact(whole) if report.get("redacted", True) else whole
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(dumps(report), "utf-8")
        fresh.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.") from error
