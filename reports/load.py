# SPDX-License-Identifier: Apache-2.0
"""Reads a saved report. A report is a stranger's file: too large, too deep or not JSON is refused in one sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reports.contract import FORMAT, FORMAT_VERSION
from reports.text import inert

MAX_REPORT_BYTES = 64 * 1024 * 1024


class NotAReport(Exception):
    """A file that holds no capability report this version can read. The text is fit for the user."""


def load_report(path: Path) -> dict[str, Any]:
    """The report in ``path``. Raises NotAReport, with the reason, for anything else."""
    try:
        if path.stat().st_size > MAX_REPORT_BYTES:
            raise NotAReport(f"{path} is larger than {MAX_REPORT_BYTES // 2**20} MiB: no capability report is.")
        report = json.loads(path.read_bytes(), parse_constant=_no_constant)
    except OSError as error:
        raise NotAReport(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise NotAReport(f"{path} is not JSON: {inert(error, 200)}.") from error
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise NotAReport(f"{path} is JSON, but no capability report of this kit.")
    version = report.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise NotAReport(f"{path} has format_version {inert(version, 20)}; this kit reads up to {FORMAT_VERSION}.")
    return report


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")
