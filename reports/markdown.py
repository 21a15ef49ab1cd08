# SPDX-License-Identifier: Apache-2.0
"""The page of a report as Markdown (GFM), for issues and wikis.

Text of the report is escaped so that it renders as itself: punctuation by backslashes, and a word that a forge would
turn into a link or a mention as a code span, inside which nothing is live.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reports.page_baselines import published
from reports.page_claims import claim_rows
from reports.page_dtypes import type_matrix
from reports.page_groups import NumberTable
from reports.page_model import SIMULATED_LINE, FindingView, Page, page_of
from reports.page_reading import Record
from reports.text import inert

MOST_ROWS = 100
"""Rows of one table: an issue has room for 65,536 characters."""
_LIVE = re.compile(r"@|://|\bwww\.|#[0-9]|\b[Gg][Hh]-[0-9]|\bmailto:|\bxmpp:|:[A-Za-z_+-][A-Za-z0-9_+-]*:")
"""What GitHub and GitLab turn into a mention, a link, a reference or a picture in plain text."""
_ACTIVE = re.compile(r"[\\`*\[\]<>|~&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_OPENS_A_BLOCK = re.compile(r"([-+=#]+|[0-9]{1,9}[.)])$|[#:]")
"""A first word that begins a list, a heading, an underline or a definition."""


def plain(text: str) -> str:
    """``text`` on one line as Markdown that shows it and does nothing else."""
    return " ".join(_word(word, first=not at) for at, word in enumerate(inert(text).split()))


def _word(word: str, *, first: bool) -> str:
    if _LIVE.search(word):
        # A pipe ends a cell even inside a code span, and may be escaped there in a table alone: it stands outside.
        return "\\|".join(code(part) if part else "" for part in word.split("|"))
    escaped = _ACTIVE.sub(lambda match: "\\" + match[0], word)
    if first and _OPENS_A_BLOCK.match(word):
        digits = len(word) - len(word.lstrip("0123456789"))
        return f"{escaped[:digits]}\\{escaped[digits:]}"
    return escaped


def code(text: str) -> str:
    """A code span that holds ``text``, whatever backticks are in it. A pipe would need more, and only in a table."""
    clean = inert(text)
    runs = [len(run) for run in re.findall(r"`+", clean)]
    fence = "`" * (max(runs, default=0) + 1)
    pad = " " if clean.startswith("`") or clean.endswith("`") else ""
    return f"{fence}{pad}{clean}{pad}{fence}"


def render_markdown(report: Record) -> str:
    """The whole page, ending with a newline."""
    page = page_of(report)
    lines = [*_head(page), *_findings(page.findings), *_facts(page), *_types(report), *_claims(report)]
    lines += _published(report)
    for table in page.tables:
        lines += _numbers(table)
    lines += _steps(page)
    if page.simulated:
        lines += ["", f"**{plain(SIMULATED_LINE)}**"]
    return "\n".join(lines) + "\n"


def _head(page: Page) -> list[str]:
    head = page.head
    lines = [f"# {plain(head.title)}", "", plain(head.when)]
    if head.notice:
        lines += ["", f"> **{plain(head.notice)}**"]
    if head.broken_off:
        lines += ["", "**This run did not end by itself: the report holds what was known by then.**"]
    lines += ["", f"**Verdict: {plain(head.verdict)}.** {plain(head.proven)}"]
    for wrong in page.wrong:
        lines += ["", f"**WRONG:** {plain(wrong)}"]
    return lines


def _findings(findings: Sequence[FindingView]) -> list[str]:
    lines = ["", "## Findings, most likely cause first"] if findings else []
    for finding in findings:
        lines += [
            "",
            f"### {finding.word.upper()} {plain(finding.code)}: {plain(finding.what)}",
            "",
            plain(finding.why),
        ]
        if finding.fix:
            lines += ["", *(f"{number}. {plain(step)}" for number, step in enumerate(finding.fix, 1))]
        if finding.evidence:
            lines += ["", f"Seen: {plain(finding.evidence)}"]
    return lines


def _facts(page: Page) -> list[str]:
    lines = []
    for section in page.facts:
        rows = [(plain(row.label), "; ".join(plain(line) for line in row.lines)) for row in section.rows]
        lines += ["", f"## {plain(section.title)}", "", *_table(("fact", "value"), rows)]
    return lines


def _types(report: Record) -> list[str]:
    matrix = type_matrix(report)
    if matrix is None:
        return []
    rows = [(plain(name.text), *(plain(cell.text) for cell in cells)) for name, cells in matrix.rows]
    lines = ["", "## Matmul types", "", *_table(("type", *(plain(column) for column in matrix.columns)), rows)]
    return (
        [*lines, "", f"Refused, and assigned to no type: codes {plain(matrix.unassigned)}"]
        if matrix.unassigned
        else lines
    )


def _claims(report: Record) -> list[str]:
    rows = [
        (
            claim.verdict,
            plain(claim.text),
            plain(claim.shown) + ("" if claim.valid else "; conditions were not valid"),
            plain(claim.source),
        )
        for claim in claim_rows(report)
    ]
    return [
        "",
        "## What others say, and what was found here",
        "",
        *_table(("verdict", "claim", "here", "source"), rows),
    ]


def _published(report: Record) -> list[str]:
    found = published(report)
    title = ["", "## Beside published figures", ""]
    if found.why_not:
        return [*title, f"Not compared: {plain(found.why_not)}"]
    rows = [
        (
            row.word,
            *map(plain, (row.what, row.here, row.published, "; ".join((row.sentence, *row.why)), f"[{row.source}]")),
        )
        for row in found.rows
    ]
    sources = [f"{number}. {plain(source)}" for number, source in enumerate(found.sources, 1)]
    columns = ("", "measurement", "here", "published", "which means", "source")
    return [*title, *_table(columns, rows), "", "Sources:", "", *sources]


def _numbers(table: NumberTable) -> list[str]:
    mark = " (SIMULATED)" if table.simulated else ""
    rows = [tuple(plain(cell.text) for cell in row) for row in table.rows[:MOST_ROWS]]
    lines = ["", f"## {plain(table.title)}{mark}", ""]
    if table.common:
        lines += [f"All: {plain(table.common)}", ""]
    lines += _table(tuple(plain(column) for column in table.columns), rows)
    more = len(table.rows) - len(rows)
    return [*lines, "", f"{more} more rows stand in the JSON report."] if more > 0 else lines


def _steps(page: Page) -> list[str]:
    rows = [(plain(step.verdict), plain(step.name), plain(step.text), plain(step.seconds)) for step in page.steps]
    return ["", "## Steps", "", *_table(("verdict", "step", "covered, or why not", "took"), rows)] if rows else []


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_line(columns), _line(["---"] * len(columns)), *(_line(row) for row in rows)]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell or "-" for cell in cells) + " |"
