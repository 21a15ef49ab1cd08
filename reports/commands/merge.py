# SPDX-License-Identifier: Apache-2.0
"""``merge``: several reports of one board as one, with every raw sample."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from reports.contract import EXIT_OK, EXIT_USAGE
from reports.load import NotAReport, load_report
from reports.text import inert, wrapped

HELP = "several reports of one board as one, with every raw sample; refuses different boards"
MOST = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("reports", type=Path, nargs="+", metavar="REPORT", help="two reports or more")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="where the merged report goes")
    parser.add_argument("--force", action="store_true", help="write over FILE")


def run(values: argparse.Namespace) -> int:
    from reports.files import check_output, write_text  # noqa: PLC0415
    from reports.merge import DifferentBoards, merge  # noqa: PLC0415

    if not 2 <= len(values.reports) <= MOST:
        print(f"rknpu-report: merge takes 2 to {MOST} reports.", file=sys.stderr)
        return EXIT_USAGE
    check_output(values.output, force=values.force)
    try:
        merged = merge([load_report(path) for path in values.reports], [str(path) for path in values.reports])
    except DifferentBoards as error:
        raise NotAReport(str(error)) from error
    write_text(values.output, json.dumps(merged, indent=1, allow_nan=False) + "\n", force=values.force)
    for conflict in merged["merged"]["conflicts"]:
        told = " / ".join(inert(value, 60) for value in conflict["values"])
        print("\n".join(wrapped(f"{inert(conflict['name'], 160)}: {told}", "    ", 100, "conflict: ")))
    count = len(merged["merged"]["conflicts"])
    print(f"Merged: {inert(values.output)}, {len(values.reports)} runs, {count or 'no'} conflicts.")
    return EXIT_OK
