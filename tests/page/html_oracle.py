# SPDX-License-Identifier: Apache-2.0
"""Reads a page as a browser would take it apart, and names everything in it that is not inert or does not lead on."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

TEXT_TAGS = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "aside",
        "header",
        "h1",
        "h2",
        "h3",
        "p",
        "nav",
        "ul",
        "ol",
        "li",
    ),
    *(
        "main",
        "section",
        "article",
        "span",
        "div",
        "figure",
        "figcaption",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
    ),
    *("td", "dl", "dt", "dd", "br", "details", "summary", "footer"),
}
SVG_TAGS = {"svg", "title", "desc", "g", "path", "defs", "use", "text", "clippath", "rect"}
ATTRIBUTES = {
    *(
        "id",
        "class",
        "lang",
        "charset",
        "content",
        "name",
        "http-equiv",
        "href",
        "tabindex",
        "role",
        "scope",
        "open",
        "style",
    ),
    *("aria-label", "aria-labelledby", "aria-describedby"),
    *("viewbox", "preserveaspectratio", "d", "x", "y", "width", "height", "transform", "clip-path"),
}
VOID = {"meta", "br"}


class Taken(HTMLParser):
    """What stands in a page: ids, targets of links, text by tag, and ``problems``."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.problems: list[str] = []
        self.open: list[str] = []
        self.marks: dict[str, int] = {}
        self.words: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        if self.open:
            self.problems.append(f"left open: {self.open}")
        self.problems += [f"id given twice: {name}" for name, times in Counter(self.ids).items() if times > 1]
        self.problems += [f"link to nowhere: {name}" for name in set(self.targets) - set(self.ids)]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        allowed = SVG_TAGS if "svg" in self.open else TEXT_TAGS | {"svg"}
        if tag not in allowed:
            self.problems.append(f"tag {tag}")
        for name, value in attrs:
            self._attribute(tag, name, value or "")
        if tag not in VOID:
            self.open.append(tag)
        self.marks[tag] = self.marks.get(tag, 0) + 1

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"closed out of turn: {tag}")

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        self.words.setdefault(inside, []).append(data)
        if inside == "style":
            self.problems += re.findall(r"(?i)url\(|@import|expression|</", data)
        elif re.search(r"[^\n -~]", data):
            self.problems.append(f"a character that is not inert: {data[:40]!r}")

    def handle_comment(self, data: str) -> None:
        self.problems.append(f"comment {data[:40]}")

    def handle_pi(self, data: str) -> None:
        self.problems.append(f"processing instruction {data[:40]}")

    def unknown_decl(self, data: str) -> None:
        self.problems.append(f"declaration {data[:40]}")

    def _attribute(self, tag: str, name: str, value: str) -> None:
        if name not in ATTRIBUTES:
            self.problems.append(f"attribute {tag} {name}")
        if name == "id":
            self.ids.append(value)
        if name == "href":
            if not re.fullmatch(r"#[A-Za-z0-9_.-]+", value):
                self.problems.append(f"link {value[:60]}")
            self.targets.append(value[1:])
        if name == "style" and re.search(r"(?i)url\(|expression|@import|javascript", value.replace("url(#plot-", "")):
            self.problems.append(f"style {value[:60]}")
        if re.search(r"[^ -~]", value.replace("\n", " ") if name == "d" else value):
            self.problems.append(f"a character that is not inert in {name}: {value[:40]!r}")

    def text(self, *tags: str) -> str:
        return " ".join(part for tag in tags or tuple(self.words) for part in self.words.get(tag, []))
