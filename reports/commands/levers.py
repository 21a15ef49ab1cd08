# SPDX-License-Identifier: Apache-2.0
"""``levers --report REPORT``: what pays on a measured board, and which measurement says so."""

from __future__ import annotations

import argparse
from pathlib import Path

from reports.load import load_report

HELP = "which levers pay on a measured board, each with the measurement that decided it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--report", type=Path, required=True, help="the board's report.json (level medium or long)")
    parser.add_argument(
        "--llama-bench",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="llama-bench -o json or jsonl of this board; may be given several times",
    )
    parser.add_argument("--model", type=Path, metavar="GGUF", help="a model, for the levers that depend on one")
    parser.add_argument("--soc", help="rk3588, rk3576, ...: where the report does not know and a model is given")
    parser.add_argument("--json", action="store_true", help="the same as one JSON document")


def run(values: argparse.Namespace) -> int:
    """Exit code 0, 2 for a request that cannot be answered, 3 for a model that cannot be read."""
    from reports.forecast.asked import tell  # noqa: PLC0415  read where it is needed
    from reports.levers.asked import levers_of  # noqa: PLC0415
    from reports.levers.document import render  # noqa: PLC0415

    return tell(values, load_report(values.report), levers_of, render)
