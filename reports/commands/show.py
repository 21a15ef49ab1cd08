# SPDX-License-Identifier: Apache-2.0
"""``show``: the page of a saved report, for a terminal, as Markdown, or as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK, EXIT_USAGE
from reports.load import load_report
from reports.text import colour_wanted, inert

HELP = "the page of a saved report: terminal, --markdown, --html FILE"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", type=Path, help="a report.json")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--paste", action="store_true", help="the short block for an issue report instead")
    form.add_argument("--markdown", action="store_true", help="Markdown, for a wiki or an issue")
    form.add_argument("--html", type=Path, metavar="FILE", help="write one self-contained HTML file with plots")
    parser.add_argument(
        "--model", type=Path, metavar="GGUF", help="with --html: put this model's layers on the roofline (header only)"
    )
    parser.add_argument("--force", action="store_true", help="with --html: write over an existing FILE")


def run(values: argparse.Namespace) -> int:
    if values.html is None and (values.model is not None or values.force):
        return _refuse("--model and --force go with --html FILE.")
    report = load_report(values.report)
    if values.html is not None:
        return _html(report, values)
    print(_text(report, values), end="")
    return EXIT_OK


def _text(report: dict[str, Any], values: argparse.Namespace) -> str:
    # Each form is imported alone: the terminal page needs none of the others.
    if values.paste:
        from reports.paste import paste  # noqa: PLC0415

        return paste(report)
    if values.markdown:
        from reports.markdown import render_markdown  # noqa: PLC0415

        return render_markdown(report)
    from reports.terminal import render  # noqa: PLC0415

    return render(report, colour=colour_wanted(sys.stdout))


def _html(report: dict[str, Any], values: argparse.Namespace) -> int:
    from reports.files import check_output, write_text  # noqa: PLC0415
    from reports.html import MissingPackage, render_html  # noqa: PLC0415
    from reports.plots.model_layers import ModelRefused, model_layers  # noqa: PLC0415

    check_output(values.html, force=values.force)
    try:
        model = model_layers(values.model) if values.model is not None else None
        text = render_html(report, model)
    except ModelRefused as error:
        return _refuse(str(error))
    except MissingPackage as error:
        print(f"rknpu-report: {inert(error)}", file=sys.stderr)
        return EXIT_COULD_NOT_RUN
    write_text(values.html, text, force=values.force)
    print(f"Page: {inert(values.html)}")
    return EXIT_OK


def _refuse(sentence: str) -> int:
    print(f"rknpu-report: {inert(sentence)}", file=sys.stderr)
    return EXIT_USAGE
