# SPDX-License-Identifier: Apache-2.0
"""A difference as text for a terminal and as Markdown for an issue. Everything in it is a stranger's text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.diff.compare import Difference
from reports.diff.rows import RowChange
from reports.markdown import plain
from reports.text import inert, table, wrapped

_LONGEST = 160
_ORDER = ("broke", "slower", "lower", "faster", "higher", "changed", "mended", "other", "went", "came")
_HIDDEN = frozenset({"masks", "series"})
"""Told by the other parameters."""
Cells = list[list[str]]


def render(difference: Difference, *, width: int = 100, everything: bool = False) -> str:
    """The page for a terminal. ``everything`` adds what varies on its own and rows that were not judged."""
    lines = [f"{_run(difference.before)}  ->  {_run(difference.after)}"]
    for note in difference.notes:
        lines += wrapped(inert(note), "    ", width, "")
    lines += ["", *wrapped(_verdict(difference), "", width)]
    for title, headers, cells in _sections(difference, everything=everything):
        lines += ["", title]
        if title in (_FINDINGS, _CHECKS) or title.startswith(_FACTS):
            for row in cells:
                lines += wrapped(": ".join([row[0], "  ->  ".join(row[1:])]), "      ", width, "  ")
        else:
            lines += ["  " + line for line in table(cells, headers, _sides(headers))]
    return "\n".join(lines) + "\n"


def render_markdown(difference: Difference, *, everything: bool = False) -> str:
    """The same as Markdown."""
    lines = [
        f"**{plain(_verdict(difference))}**",
        "",
        f"{plain(_run(difference.before))} -> {plain(_run(difference.after))}",
    ]
    lines += [f"\n> {plain(note)}" for note in difference.notes]
    for title, headers, cells in _sections(difference, everything=everything):
        lines += [
            "",
            f"### {title}",
            "",
            _md_row([header or " " for header in headers]),
            _md_row(["---"] * len(headers)),
        ]
        lines += [_md_row([plain(cell) for cell in row]) for row in cells]
    return "\n".join(lines) + "\n"


_FINDINGS = "Findings"
_CHECKS = "Checks of the conformance suite"
_FACTS = "Facts"
_FACTS_THAT_VARY = "Facts that vary on their own"


def _sections(difference: Difference, *, everything: bool) -> list[tuple[str, tuple[str, ...], Cells]]:
    changed = sorted((row for row in difference.rows if row.changed), key=lambda row: _ORDER.index(row.word))
    steady = [change for change in difference.facts if not change.volatile]
    sections: list[tuple[str, tuple[str, ...], Cells]] = [
        (
            _FINDINGS,
            ("change", "severity, code, what"),
            [[change.word, _finding_words(change.finding)] for change in difference.findings],
        ),
        (
            _CHECKS,
            ("change", "check, before", "after, why"),
            [
                [
                    change.word,
                    f"{_text(change.suite)} {_text(change.name)}: {_text(change.before or 'not judged')}",
                    _text(change.after or "not judged") + (f": {_text(change.why)}" if change.why else ""),
                ]
                for change in difference.checks
            ],
        ),
        ("Measurements", _ROW_HEADERS, [_row_cells(row) for row in changed]),
        (_FACTS, ("fact", "before", "after"), _fact_cells(steady)),
    ]
    if everything:
        loose = [change for change in difference.facts if change.volatile]
        quiet = [row for row in difference.rows if row.word in ("unclear", "not judged")]
        sections.append((_FACTS_THAT_VARY, ("fact", "before", "after"), _fact_cells(loose)))
        sections.append(
            ("Measurements that were not judged, or not clearly", _ROW_HEADERS, [_row_cells(row) for row in quiet])
        )
    return [section for section in sections if section[2]]


_ROW_HEADERS = ("change", "measurement", "before", "after", "unit", "ratio", "interval", "why")


def _sides(headers: Sequence[str]) -> list[str]:
    return ["right" if header in ("before", "after", "ratio") else "left" for header in headers]


def _finding_words(finding: dict[str, Any]) -> str:
    return f"[{_text(finding.get('severity'))}] {_text(finding.get('code'))} {_text(finding.get('what'))}"


def _fact_cells(changes: Sequence[Any]) -> Cells:
    return [[_text(change.key), _text(change.before), _text(change.after)] for change in changes]


def _row_cells(row: RowChange) -> list[str]:
    interval = f"{row.ratio.low:.3f} to {row.ratio.high:.3f}" if row.ratio else ""
    ratio = f"{row.ratio.value:.3f}" if row.ratio else _plain_ratio(row)
    numbers = [_number(row.before), _number(row.after)]
    return [
        row.word,
        row_words(row.name, row.parameters),
        *numbers,
        _text(row.unit),
        ratio,
        interval,
        _text(row.why or ""),
    ]


def _plain_ratio(row: RowChange) -> str:
    return f"{row.after / row.before:.3f}" if row.before and row.after and row.word != "not judged" else ""


def row_words(name: str, parameters: dict[str, Any], *, full: bool = False) -> str:
    """A row in few words: ``gemm_rate int8_int8_int32 512x4096x4096 B_layout=native``. ``full`` leaves nothing out."""
    values = dict(parameters)
    words = [_text(name)]
    if values.get("type_name") not in (None, "unassigned"):
        words.append(_text(values.pop("type_name")))
        if not full:
            values.pop("type", None)
    if {"M", "K", "N"} <= set(values):
        words.append("x".join(_text(values.pop(side)) for side in "MKN"))
    if values.get("core_mask") == 1 and name != "core_mask" and not full:
        del values["core_mask"]
    words += [f"{_text(key)}={_text(value)}" for key, value in values.items() if full or key not in _HIDDEN]
    return inert(" ".join(words), 4 * _LONGEST if full else _LONGEST)


def _number(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else "-"


def _verdict(difference: Difference) -> str:
    counts = difference.counts()
    changed = {word: counts[word] for word in _ORDER if counts.get(word)}
    said = ", ".join(f"{count} {word}" for word, count in changed.items()) or "no change"
    judged = sum(counts.get(word, 0) for word in ("same", "unclear", "faster", "slower", "higher", "lower", "changed"))
    if difference.mixed:
        rows = "not compared"
    elif not difference.rows:
        rows = "none in either report"
    else:
        rest = ", ".join(
            f"{counts[word]} {text}"
            for word, text in (("unclear", "too noisy to tell"), ("not judged", "not judged"))
            if counts.get(word)
        )
        rows = f"{said} ({judged} judged{'; ' + rest if rest else ''})"
    steady = sum(not change.volatile for change in difference.facts)
    head = "Worse" if difference.severity_rose else "Not worse"
    came = [change for change in difference.findings if change.rises]
    findings = f"{len(came)} came or got graver" if came else "no warning and no error came"
    broke = [change for change in difference.checks if change.rises]
    checks = f"checks: {len(broke)} broke; " if broke else ""
    return f"{head}: findings: {findings}; {checks}measurements: {rows}; facts: {steady or 'none'} changed."


def _run(head: dict[str, Any]) -> str:
    words = [_text(head.get("started_at")), f"level {_text(head.get('level'))}"]
    if head.get("library"):
        words.append(_text(head["library"]))
    if head.get("simulated"):
        words.append("SIMULATED")
    return ", ".join(words)


def _text(value: Any) -> str:
    return inert(value, _LONGEST)


def _md_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
