# SPDX-License-Identifier: Apache-2.0
"""``redact``: a copy of a report without personal data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from reports.contract import EXIT_OK
from reports.load import load_report
from reports.text import inert

HELP = "a copy of a report without host name, users, serial numbers, addresses and machine ids"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, help="a report.json")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where the copy goes (default: printed)")
    parser.add_argument("--force", action="store_true", help="write over FILE")
    parser.add_argument(
        "--host", action="append", default=[], metavar="NAME", help="the board's host name, if it has another"
    )
    parser.add_argument("--user", action="append", default=[], metavar="NAME", help="a user name on the board")
    parser.add_argument("--serial", action="append", default=[], metavar="WORD", help="a serial number of the board")
    parser.epilog = (
        "Shapes of personal data (addresses, ids, home folders) are found by themselves; names are those of the "
        "machine this runs on, and those given. A report of another board needs its names given."
    )


def run(values: argparse.Namespace) -> int:
    from reports.files import check_output, write_text  # noqa: PLC0415
    from reports.redact import Names, names_here, redact  # noqa: PLC0415

    if values.output is not None:
        check_output(values.output, force=values.force)
    names = names_here() | Names(tuple(values.host), tuple(values.user), tuple(values.serial))
    clean = {**redact(load_report(values.report), names), "redacted": True}
    text = json.dumps(clean, indent=1, allow_nan=False) + "\n"
    if values.output is None:
        print(text, end="")
    else:
        write_text(values.output, text, force=values.force)
        print(f"Redacted: {inert(values.output)}")
    return EXIT_OK
