# SPDX-License-Identifier: Apache-2.0
"""The Markdown page: read back by another's parser it says what the report says, and nothing in it is live."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from reports.markdown import code, plain, render_markdown
from reports.page_model import SIMULATED_LINE
from reports.text import inert
from tests.page.sample_reports import as_saved, bare_report, board_report, mock_report

LIVE = {"link_open", "image", "html_inline", "html_block"}
PUNCTUATION = "".join(chr(number) for number in range(33, 127) if not chr(number).isalnum())


def parsed(text: str) -> list[Token]:
    """Every token, those inside others too. Bare addresses become links, as on a forge."""
    tokens: list[Token] = []
    for token in MarkdownIt("gfm-like", {"html": True, "linkify": True}).parse(text):
        tokens += [token, *(token.children or [])]
    return tokens


def shown(text: str) -> str:
    return "".join(token.content for token in parsed(text) if token.type in ("text", "code_inline"))


def live(text: str) -> list[str]:
    return [token.type for token in parsed(text) if token.type in LIVE]


@pytest.mark.parametrize("make", [board_report, mock_report, bare_report])
def test_nothing_in_the_page_is_live(make: Any) -> None:
    page = render_markdown(as_saved(make()))
    assert live(page) == []
    assert page.isascii()


def test_the_verdict_stands_first_and_simulated_at_both_ends() -> None:
    page = render_markdown(as_saved(mock_report()))
    assert page.index("SIMULATED: The mock answered") < page.index("**Verdict: 1 error, 1 warning, 1 note.**")
    assert page.index("**Verdict") < page.index("## Findings") < page.index("## GEMM rate")
    assert page.rstrip().endswith(f"**{SIMULATED_LINE}**")
    assert "SIMULATED" not in render_markdown(as_saved(board_report()))


def test_next_steps_are_numbered() -> None:
    page = render_markdown(as_saved(board_report()))
    assert "\n1. Run it again.\n2. Update librknnrt.\n" in page


def test_every_table_has_as_many_cells_in_each_line_as_columns() -> None:
    tokens = MarkdownIt("gfm-like").parse(render_markdown(as_saved(board_report())))
    widths = []
    for token in tokens:
        if token.type == "tr_open":
            widths.append(0)
        elif token.type in ("td_open", "th_open"):
            widths[-1] += 1
        elif token.type == "table_close":
            assert len(set(widths)) == 1
            widths = []
    assert sum(token.type == "table_open" for token in tokens) >= 15


def test_numbers_of_the_report_stand_in_its_tables() -> None:
    words = shown(render_markdown(as_saved(board_report())))
    for number in ("0.69", "26.6", "186", "8192"):
        assert number in words


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from(PUNCTUATION + "ab1 \n"), max_size=30))
def test_any_text_shows_as_itself_and_opens_nothing(text: str) -> None:
    tokens = parsed(plain(text))
    assert {token.type for token in tokens} <= {
        "paragraph_open",
        "paragraph_close",
        "inline",
        "text",
        "code_inline",
        "text_special",
    }
    assert "".join(shown(plain(text)).split()) == "".join(inert(text).split())


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from(PUNCTUATION + "ab1 "), min_size=1, max_size=30).filter(str.strip))
def test_any_text_stays_in_its_cell(text: str) -> None:
    tokens = parsed(f"| a | b |\n| --- | --- |\n| {plain(text)} | end |\n")
    assert sum(token.type == "td_open" for token in tokens) == 2
    assert [token.content for token in tokens if token.type == "text"][-1] == "end"
    assert live(plain(text)) == []


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("`@ab "), min_size=1, max_size=12).filter(str.strip))
def test_a_code_span_holds_any_backticks(text: str) -> None:
    assert [token.content.strip() for token in parsed(code(text)) if token.type == "code_inline"] == [text.strip()]


@pytest.mark.parametrize(
    "text",
    [
        "@someone look",
        "see https://evil.invalid/x",
        "www.evil.invalid",
        "[x](javascript:alert(1))",
        "![x](https://evil.invalid/a.png)",
        "<script>alert(1)</script>",
        "<https://evil.invalid>",
        "a@evil.invalid",
        "&lt;b&gt; &#64;someone",
        "# heading",
        "1. item",
        "- item",
        "> quote",
        "```\nfence",
        "    indented",
        "| a | b |",
        "[ref]: https://evil.invalid",
        "fixes #12, GH-12",
        "--- ===",
        "a\\",
        "**bold** _it_ ~~no~~ $x$",
    ],
)
def test_what_would_be_live_is_shown(text: str) -> None:
    assert live(plain(text)) == []
    assert "".join(shown(plain(text)).split()) == "".join(text.split())
    for sign in ("@", "#12", "GH-12", "www."):
        if sign in text and not text.startswith("&"):
            assert any(sign in token.content for token in parsed(plain(text)) if token.type == "code_inline"), text
