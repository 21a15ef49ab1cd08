# SPDX-License-Identifier: Apache-2.0
"""``show``: the page of a saved report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from reports.contract import EXIT_OK
from reports.load import load_report
from reports.paste import paste
from reports.terminal import render
from reports.text import colour_wanted

HELP = "the terminal page of a saved report"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, help="a report.json")
    parser.add_argument("--paste", action="store_true", help="the short block for an issue report instead")


def run(values: argparse.Namespace) -> int:
    report = load_report(values.report)
    print(paste(report) if values.paste else render(report, colour=colour_wanted(sys.stdout)), end="")
    return EXIT_OK
