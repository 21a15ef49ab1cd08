# SPDX-License-Identifier: Apache-2.0
"""``python -m reports show REPORT``: the terminal page of a saved report."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reports.contract import EXIT_OK, EXIT_USAGE, FORMAT, FORMAT_VERSION
from reports.paste import paste
from reports.terminal import render
from reports.text import colour_wanted, inert

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


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0, or 2 for a request or a file that cannot be used."""
    parser = argparse.ArgumentParser(prog="rknpu-report", description="Shows capability reports.")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="the terminal page of a saved report")
    show.add_argument("report", type=Path, help="a report.json")
    show.add_argument("--paste", action="store_true", help="the short block for an issue report instead")
    values = parser.parse_args(argv)
    try:
        report = load_report(values.report)
    except NotAReport as error:
        print(f"rknpu-report: {error}", file=sys.stderr)
        return EXIT_USAGE
    text = paste(report) if values.paste else render(report, colour=colour_wanted(sys.stdout))
    print(text, end="")
    return EXIT_OK


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


if __name__ == "__main__":
    sys.exit(main())
