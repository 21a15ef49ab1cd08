# SPDX-License-Identifier: Apache-2.0
"""``validate``: whether a file is a capability report that agrees with its schema and with itself."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from reports.contract import EXIT_FINDINGS, EXIT_OK, FORMAT
from reports.load import NotAReport, load_json
from reports.text import inert, wrapped

HELP = "whether a report agrees with its schema and with itself"
SHOWN = 50


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, help="a report.json")
    parser.add_argument("--json", action="store_true", help="the flaws as one JSON document")
    parser.epilog = "Exit code 1 when there is a flaw of level error; warnings alone give 0."


def run(values: argparse.Namespace) -> int:
    from reports.validate import validate  # noqa: PLC0415

    report = load_json(values.report, "capability report")
    if not isinstance(report, dict) or report.get("format") != FORMAT:
        raise NotAReport(f"{values.report} is JSON, but no capability report of this kit.")
    flaws = validate(report)
    errors = sum(flaw.level == "error" for flaw in flaws)
    if values.json:
        rows = [{"level": flaw.level, "where": flaw.where, "what": flaw.what} for flaw in flaws]
        print(json.dumps({"valid": errors == 0, "flaws": rows}, indent=1))
    else:
        for flaw in flaws[:SHOWN]:
            print(
                "\n".join(
                    wrapped(f"{inert(flaw.where) or '/'}: {inert(flaw.what, 300)}", "    ", 100, f"{flaw.level} ")
                )
            )
        if len(flaws) > SHOWN:
            print(f"... and {len(flaws) - SHOWN} more")
        words = "is valid" if not errors else "is not valid"
        print(f"{inert(values.report)} {words}: {errors} errors, {len(flaws) - errors} warnings.")
    return EXIT_FINDINGS if errors else EXIT_OK
