# SPDX-License-Identifier: Apache-2.0
"""``fleet``: the reports of many boards side by side."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK
from reports.load import NotAReport, load_report
from reports.text import inert, table, wrapped

HELP = "the reports of many boards: a table, what stands out, CSV or JSON lines"
MOST = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder; every *.json in it and below is looked at")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="every measurement as CSV")
    form.add_argument("--jsonl", action="store_true", help="every measurement as a line of JSON, one schema for all")
    parser.epilog = "Files that are no report are named on standard error and left out. Exit code 3 when none is one."


def run(values: argparse.Namespace) -> int:
    from reports.fleet import Board, as_csv, as_json_lines, board_cells, outlier_words, outliers  # noqa: PLC0415

    if not values.folder.is_dir():
        raise NotAReport(f"{values.folder} is no folder.")
    paths = [path for path in sorted(values.folder.rglob("*.json")) if path.is_file()]
    if len(paths) > MOST:
        raise NotAReport(f"{values.folder} holds more than {MOST} JSON files: name a smaller folder.")
    boards = []
    for path in paths:
        try:
            boards.append(Board.slim(str(path.relative_to(values.folder)), load_report(path)))
        except NotAReport as error:
            print(f"rknpu-report: left out: {inert(error)}", file=sys.stderr)
    if not boards:
        print(f"rknpu-report: no capability report in {inert(values.folder)}.", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    if values.csv:
        print(as_csv(boards), end="")
    elif values.jsonl:
        print(as_json_lines(boards), end="")
    else:
        headers, cells = board_cells(boards)
        sides = ("left", "left", "left", "left", "right", "right", "right", "right", "right", "left")
        print("\n".join(table(cells, headers, sides)))
        found = outliers(boards)
        print(f"\n{len(boards)} boards, {len(found) or 'no'} measurements stand out.")
        for each in found:
            print("\n".join(wrapped(outlier_words(each), "    ", 100, "  ")))
    return EXIT_OK
