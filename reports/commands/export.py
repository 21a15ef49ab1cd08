# SPDX-License-Identifier: Apache-2.0
"""``export``: a report in the formats of monitoring and of test systems."""

from __future__ import annotations

import argparse
from pathlib import Path

from reports.contract import EXIT_OK
from reports.load import load_report
from reports.text import inert

HELP = "a report for Prometheus (textfile collector), as KTAP, or as JUnit XML"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, help="a report.json")
    form = parser.add_mutually_exclusive_group(required=True)
    form.add_argument(
        "--prom",
        type=Path,
        metavar="FILE",
        help="write FILE for node_exporter's textfile collector, whole or not at all",
    )
    form.add_argument("--ktap", action="store_true", help="print KTAP version 1")
    form.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML; an existing FILE is replaced")


def run(values: argparse.Namespace) -> int:
    from reports.files import write_text  # noqa: PLC0415

    report = load_report(values.report)
    if values.ktap:
        from reports.ktap import render_ktap  # noqa: PLC0415

        print(render_ktap(report), end="")
        return EXIT_OK
    if values.prom is not None:
        from reports.prometheus import render_prometheus  # noqa: PLC0415

        path, text = values.prom, render_prometheus(report)
    else:
        from reports.junit import render_junit  # noqa: PLC0415

        path, text = values.junit, render_junit(report)
    write_text(path, text, force=True)  # both are written again after each run, into a place their reader looks at
    print(f"Written: {inert(path)}")
    return EXIT_OK
