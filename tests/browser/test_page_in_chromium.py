# SPDX-License-Identifier: Apache-2.0
"""The HTML page in Chromium, on a phone and on a desk, dark and light: it fits, loads nothing, and can be read."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import Shown

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

PLOTS = ("roofline", "rate-over-k", "core-scaling", "time-over-m", "bandwidth", "conditions")
AA = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]

BOXES = """names => names.map(name => {
  const svg = document.querySelector('#plot-' + name + ' svg'), box = svg.getBoundingClientRect();
  const ink = getComputedStyle(svg.querySelector('text')).fill;
  const sizes = [...svg.querySelectorAll('text')].map(text => text.getBoundingClientRect().height);
  const {width, height, left, right} = box;
  return {name, width, height, left, right, ink, smallest: Math.min(...sizes)};
})"""
UNSEEN_FOCUS = """() => {
  const here = document.activeElement, style = getComputedStyle(here), box = here.getBoundingClientRect();
  const inside = box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth;
  return {href: here.getAttribute('href'), outline: style.outlineStyle, width: parseFloat(style.outlineWidth), inside};
}"""


def judged_by_axe(page: Page, **options: Any) -> dict[str, Any]:
    """What axe-core says of the page: its rules of A, AA and good practice."""
    axe = importlib.import_module("axe_playwright_python.sync_playwright").Axe()  # ships no type information
    answer: dict[str, Any] = axe.run(page, options={"runOnly": AA}, **options).response
    return answer


def test_nothing_is_wider_than_the_window(shown: Shown) -> None:
    wide, window = shown.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide <= window


def test_the_page_asks_for_nothing_and_complains_of_nothing(shown: Shown) -> None:
    assert len(shown.requests) == 1
    assert shown.requests[0].startswith("file://")
    assert shown.complaints == []


def test_every_plot_is_seen_whole_with_text_of_a_readable_size(shown: Shown) -> None:
    boxes = shown.page.evaluate(BOXES, list(PLOTS))
    window = shown.page.evaluate("innerWidth")
    assert [box["name"] for box in boxes] == list(PLOTS)
    for box in boxes:
        assert box["width"] >= 300, box
        assert box["height"] >= 200, box
        assert box["left"] >= 0, box
        assert box["right"] <= window, box
        assert box["smallest"] >= 8, box


def test_plots_take_the_colours_of_the_scheme(shown: Shown) -> None:
    dark = shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for box in shown.page.evaluate(BOXES, list(PLOTS)):
        assert box["ink"] == ("rgb(232, 237, 242)" if dark else "rgb(22, 32, 42)"), box


def test_axe_finds_nothing_against_aa(shown: Shown) -> None:
    answer = judged_by_axe(shown.page)
    wrong = [
        (rule["id"], node["html"][:120], node["failureSummary"])
        for rule in answer["violations"]
        for node in rule["nodes"]
    ]
    assert wrong == []
    assert "color-contrast" in {rule["id"] for rule in answer["passes"]}


def test_axe_would_find_a_pale_text(browser: Browser, files: dict[str, Path]) -> None:
    page = browser.new_page()
    text = files["mock"].read_text(encoding="ascii")
    page.set_content(
        text.replace("--faint: #4a5866", "--faint: #b8c0c8").replace("--faint: #b3bfca", "--faint: #39444f")
    )
    answer = judged_by_axe(page, context="header")
    page.close()
    assert "color-contrast" in {rule["id"] for rule in answer["violations"]}


def test_the_keyboard_reaches_every_link_with_a_focus_to_see(shown: Shown) -> None:
    page = shown.page
    expected = page.evaluate(
        "[...document.querySelectorAll('a, summary, .scroll')].filter(e => e.checkVisibility()).length"
    )
    page.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
    first = []
    for _ in range(40):
        page.keyboard.press("Tab")
        first.append(page.evaluate(UNSEEN_FOCUS))
    assert [step["href"] for step in first[:3]] == ["#main", "#main", "#findings"]
    for step in first:
        assert step["outline"] == "solid", step
        assert step["width"] >= 2, step
        assert step["inside"], step
    assert expected > 40
    assert page.evaluate("[...document.querySelectorAll('a, summary, .scroll')].every(e => e.tabIndex === 0)")


def test_a_value_leads_to_how_it_was_obtained(shown: Shown) -> None:
    page = shown.page
    link = page.locator("#facts a.how").first
    link.focus()
    page.keyboard.press("Enter")
    target = page.evaluate("document.querySelector(':target').getBoundingClientRect().top")
    height = page.evaluate("innerHeight")
    assert 0 <= target < height


def test_simulated_is_seen_first_and_last_on_the_mocks_page(browser: Browser, files: dict[str, Path]) -> None:
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto(files["mock"].as_uri(), timeout=120_000)
    notes = page.locator(".simulated")
    assert notes.count() == 2
    first, last = (notes.nth(at).bounding_box() for at in (0, 1))
    total = page.evaluate("document.documentElement.scrollHeight")
    page.close()
    assert first is not None
    assert last is not None
    assert first["y"] < 10
    assert last["y"] + last["height"] > total - 200
