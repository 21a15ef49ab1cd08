# SPDX-License-Identifier: Apache-2.0
"""``diff``: what changed between two reports."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from reports.contract import EXIT_FINDINGS, EXIT_OK
from reports.load import NotAReport, load_json, load_report
from reports.text import inert

HELP = "what changed between two reports: facts, measurements beyond their noise, findings"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "before", type=Path, metavar="A", help="a report.json, or published figures (reports/baselines/*.json)"
    )
    parser.add_argument("after", type=Path, metavar="B", help="the report to hold against it")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as one JSON document")
    form.add_argument("--markdown", action="store_true", help="as Markdown")
    parser.add_argument("--all", action="store_true", help="also what varies on its own, and rows that were not judged")
    parser.add_argument("--mixed", action="store_true", help="allow a simulated report beside a real one")
    parser.add_argument("--fail-on-slower", action="store_true", help="exit code 1 when a measurement got slower too")
    parser.epilog = (
        "A measurement is called changed when the 95 % interval of its ratio of medians, taken for all rows together, "
        "lies wholly beyond 3 %. Rows measured under bad conditions are never called changed. Exit code 1 when a "
        "warning or an error came or got graver, or a result that was right is right no more."
    )


def run(values: argparse.Namespace) -> int:
    from reports.diff.compare import Incomparable, compare  # noqa: PLC0415
    from reports.diff.page import render, render_markdown  # noqa: PLC0415

    if _is_baseline(values.before):
        return _against_figures(values, load_report(values.after))
    before, after = load_report(values.before), load_report(values.after)
    try:
        difference = compare(before, after, mixed=values.mixed)
    except Incomparable as error:
        raise NotAReport(str(error)) from error
    if values.json:
        print(json.dumps(difference.as_json(), indent=1, allow_nan=False))
    elif values.markdown:
        print(render_markdown(difference, everything=values.all), end="")
    else:
        print(render(difference, everything=values.all), end="")
    worse = difference.severity_rose or (values.fail_on_slower and bool(difference.slower))
    return EXIT_FINDINGS if worse else EXIT_OK


def _is_baseline(path: Path) -> bool:
    document = load_json(path, "capability report")
    return isinstance(document, dict) and document.get("format") == "rknpu-kit baseline"


def _against_figures(values: argparse.Namespace, report: dict[str, Any]) -> int:
    """The report beside the published figures in the file ``before``. Nothing can have got worse, so the code is 0."""
    from reports.baselines.compare import compare_with_baselines  # noqa: PLC0415
    from reports.baselines.page import baseline_lines  # noqa: PLC0415
    from reports.baselines.table import BadBaseline, read_baseline  # noqa: PLC0415

    if values.markdown:
        raise NotAReport("--markdown is for two reports; published figures are in the Markdown of show.")
    try:
        baseline = read_baseline(values.before)
    except BadBaseline as error:
        raise NotAReport(str(error)) from error
    if values.json:
        rows = [row.as_json() for row in compare_with_baselines(report, (baseline,))]
        print(json.dumps(rows, indent=1, allow_nan=False))
    else:
        lines = baseline_lines(report, 100, (baseline,)) or ["  The report has no measurements."]
        print("\n".join([f"Beside published figures: {inert(baseline.name, 200)}", *lines]))
    return EXIT_OK
