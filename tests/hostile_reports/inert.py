# SPDX-License-Identifier: Apache-2.0
"""What it means for an output to be inert, by kind of output. Each raises AssertionError for one that is not.

Written from the formats' own descriptions; shares no code with the renderers.
"""

from __future__ import annotations

import csv
import io
import json
import re
from xml.etree import ElementTree


def terminal(text: str) -> None:
    """Printable ASCII and line ends: no escape sequence can be in it."""
    bad = {char for char in text if char != "\n" and not " " <= char <= "~"}
    assert not bad, f"not inert on a terminal: {sorted(map(ascii, bad))}"


def markdown(text: str) -> None:
    """Nothing a Markdown reader would take for HTML: outside of code spans each ``<`` is escaped."""
    terminal(text.replace("\u200b", ""))
    outside = re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    for match in re.finditer("<", outside):
        before = outside[: match.start()]
        slashes = len(before) - len(before.rstrip("\\"))
        tag = outside[match.start() : match.start() + 12]
        assert slashes % 2 == 1 or tag.startswith(("<details", "</details", "<summary", "</summary", "<br")), tag


_SAMPLE = re.compile(r'[a-z_]+(\{([a-zA-Z_][a-zA-Z0-9_]*="(\\["\\n]|[^"\\\n])*"(,|(?=\})))*\})? (\S+)')


def prometheus(text: str) -> None:
    """The text exposition format: comments, or name{labels} value; every series once; metrics not interleaved."""
    terminal(text)
    assert text.endswith("\n")
    seen: set[str] = set()
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.match(r"# (HELP|TYPE) rknpu_probe_[a-z_]+ ", line), line
            continue
        match = _SAMPLE.fullmatch(line)
        assert match, line
        float(match[5])
        series = line[: match.start(5) - 1]
        assert series.startswith("rknpu_probe_"), series
        assert series not in seen, f"twice: {series}"
        seen.add(series)


def ktap(text: str) -> None:
    """KTAP version 1: each plan is kept, lines are results, plans or comments, and numbers count up."""
    terminal(text)
    lines = text.splitlines()
    assert lines[0] == "KTAP version 1"
    for indent in ("", "  "):
        plan, count = 0, 0
        for line in lines:
            if not line.startswith(indent) or line[len(indent) : len(indent) + 1] == " ":
                continue
            body = line[len(indent) :]
            if body.startswith("1.."):
                assert count == plan, "a plan was not kept"
                plan, count = int(body[3:]), 0
            elif re.match(r"(not )?ok ", body):
                count += 1
                match = re.fullmatch(r"(?:not )?ok ([0-9]+) ([^#]+?)(?: # (?:SKIP|ERROR|TIMEOUT)(?: [^#]*)?)?", body)
                assert match, body
                assert int(match[1]) == count, body
            else:
                assert body.startswith(("#", "KTAP version 1")), body
        assert count == plan, "a plan was not kept"


def junit(text: str) -> None:
    """Well-formed XML with the elements of JUnit and no other."""
    terminal(text)
    assert "<!" not in text
    top = ElementTree.fromstring(text.partition("\n")[2])  # without a document type, as asserted
    kinds = {element.tag for element in top.iter()}
    assert kinds <= {"testsuites", "testsuite", "testcase", "failure", "error", "skipped", "system-out"}, kinds
    for suite in top:
        assert int(suite.attrib["tests"]) == len(suite)


def csv_table(text: str) -> None:
    """Rows of one length; no cell that a spreadsheet runs, but numbers."""
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    terminal("".join("".join(row) for row in rows))
    for row in rows:
        assert len(row) == len(rows[0])
        for cell in row:
            if cell.lstrip()[:1] in ("=", "+", "@", "-", "\t", "\r", "|", "%"):
                float(cell)


def json_lines(text: str) -> None:
    """One object a line, the same keys in each, scalars only, and one type for each key."""
    kinds: dict[str, set[type]] = {}
    keys = None
    for line in text.splitlines():
        record = json.loads(line, parse_constant=lambda name: 1 / 0)
        keys = keys or list(record)
        assert list(record) == keys
        for key, value in record.items():
            assert value is None or isinstance(value, (str, bool, int, float)), key
            if value is not None:
                kinds.setdefault(key, set()).add(type(value))
    assert all(len(found) == 1 for found in kinds.values()), kinds


def json_document(text: str) -> None:
    """JSON without NaN and without half characters."""
    json.loads(text, parse_constant=lambda name: 1 / 0)
    text.encode("utf-8")


def html(text: str) -> None:
    """No script, no handler, no address of elsewhere came from the report: its own script words stay escaped."""
    text.encode("utf-8")
    low = text.lower()
    assert "<script>alert" not in low
    assert "<img src=x" not in low
    assert not re.search(r"<[a-z]+[^>]*\shref=[\"']?javascript:", low)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f]", text)
