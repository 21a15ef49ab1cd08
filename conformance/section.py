# SPDX-License-Identifier: Apache-2.0
"""The section ``conformance`` of a capability report: what was judged, how each check ended, in one place."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformance.options import Options
from conformance.runner import Outcome
from conformance.target import Target
from reports.build import dumps
from reports.contract import FORMAT


class CannotWrite(Exception):
    """The report cannot be read or written; the message says why and what to do."""


def section(target: Target, options: Options, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """JSON of a run of the suite. Every check has ``covered`` (a pass) or ``reason`` (anything else)."""
    return {
        "simulated": target.simulated,
        "soc": target.soc,
        "level": options.level,
        "seed": options.seed,
        "library": {
            "path": str(target.path),
            "version": target.version,
            "sha256": target.sha256,
            "mock": target.mock,
        },
        "checks": [
            {
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
    """Puts the section into the report at ``path``, all or nothing. Raises :class:`CannotWrite`."""
    report = read_report(path)
    report["conformance"] = what
    fresh = path.with_name(f".{path.name}.new")
    try:
        fresh.write_text(dumps(report), "utf-8")
        fresh.replace(path)
    except OSError as error:
        raise CannotWrite(f"{path} cannot be written: {error.strerror}.") from error
