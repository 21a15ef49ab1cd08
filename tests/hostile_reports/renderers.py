# SPDX-License-Identifier: Apache-2.0
"""Every way to show a report, with what its output must be. A new renderer adds a line and is tested with the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from reports.baselines import compare_with_baselines
from reports.baselines.page import baseline_lines
from reports.diff import compare
from reports.diff.compare import Incomparable
from reports.diff.page import render as render_diff
from reports.diff.page import render_markdown as render_diff_markdown
from reports.fleet import Board, as_csv, as_json_lines, board_cells, outliers
from reports.junit import render_junit
from reports.ktap import render_ktap
from reports.markdown import render_markdown
from reports.merge import DifferentBoards, merge
from reports.paste import paste
from reports.prometheus import render_prometheus
from reports.redact import Names, redact
from reports.terminal import render
from reports.text import table
from reports.validate import validate
from tests.hostile_reports import inert

Report = dict[str, Any]
Renderer = Callable[[Report, Report], str]
"""Takes the hostile report and a good one of the same board."""


def _diff(bad: Report, good: Report) -> str:
    return "".join(_compared(one, other, render_diff) for one, other in ((bad, good), (good, bad), (bad, bad)))


def _compared(one: Report, other: Report, show: Callable[..., str]) -> str:
    try:
        return show(compare(one, other, mixed=False), everything=True)
    except Incomparable:
        return show(compare(one, other, mixed=True), everything=True)


def _diff_json(bad: Report, good: Report) -> str:
    return json.dumps(compare(good, bad, mixed=True).as_json(), allow_nan=False)


def _merged(bad: Report, good: Report) -> str:
    try:
        merged = merge([bad, good, bad], ["a", "b", "c"])
    except DifferentBoards:
        merged = bad
    return json.dumps(merged, allow_nan=False) + "\n"


def _fleet(bad: Report, good: Report) -> str:
    boards = [Board(f"{index}.json", report) for index, report in enumerate([good] * 5 + [bad])]
    headers, cells = board_cells(boards)
    outliers(boards)
    return "\n".join(table(cells, headers, ["left"] * len(headers)))


def _as_board(report: Report) -> Report:
    """The report as if of silicon, so that it is held against published figures."""
    facts = {**report["facts"]}
    for key, value in (("soc.name", "RK3588"), ("npu.stack", "vendor")):
        facts[key] = {**facts.get(key, {}), "value": value}
    return {**report, "simulated": False, "simulation": None, "facts": facts}


def _baselines(bad: Report, _good: Report) -> str:
    board = _as_board(bad)
    compare_with_baselines(board)
    return "\n".join(baseline_lines(board, 100))


def _flaws(bad: Report, _good: Report) -> str:
    return json.dumps([[flaw.level, flaw.where, flaw.what] for flaw in validate(bad)])


def _html(bad: Report, _good: Report) -> str:
    from reports.html import render_html  # noqa: PLC0415  needs packages that the others do not

    return render_html(bad, None)


RENDERERS: dict[str, tuple[Renderer, Callable[[str], None]]] = {
    "terminal": (lambda bad, good: render(bad), inert.terminal),
    "paste": (lambda bad, good: paste(bad), inert.terminal),
    "markdown": (lambda bad, good: render_markdown(bad), inert.markdown),
    "diff": (_diff, inert.terminal),
    "diff markdown": (lambda bad, good: _compared(good, bad, render_diff_markdown), inert.markdown),
    "diff json": (_diff_json, inert.json_document),
    "validate": (_flaws, inert.json_document),
    "redact": (lambda bad, good: json.dumps(redact(bad, Names()), allow_nan=False), inert.json_document),
    "merge": (_merged, inert.json_document),
    "fleet": (_fleet, inert.terminal),
    "fleet csv": (lambda bad, good: as_csv([Board("=1+1.json", bad), Board("b", good)]), inert.csv_table),
    "fleet json lines": (lambda bad, good: as_json_lines([Board("a", bad), Board("b", good)]), inert.json_lines),
    "baselines": (_baselines, inert.terminal),
    "prometheus": (lambda bad, good: render_prometheus(bad), inert.prometheus),
    "ktap": (lambda bad, good: render_ktap(bad), inert.ktap),
    "junit": (lambda bad, good: render_junit(bad), inert.junit),
}
SLOW: dict[str, tuple[Renderer, Callable[[str], None]]] = {"html": (_html, inert.html)}
"""Tried with fewer reports."""
