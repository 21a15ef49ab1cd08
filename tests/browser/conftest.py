# SPDX-License-Identifier: Apache-2.0
"""Chromium for the tests of the page: the system's own, found by name, driven by playwright."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from reports.html import render_html
from reports.plots.series import Layer, ModelLayers
from tests.browser.chromium import chromium
from tests.page.sample_reports import as_saved, board_report, mock_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDTHS = (390, 1280)
SCHEMES = ("light", "dark")
MODEL = ModelLayers("a model", (Layer("ffn_up", 640, 2048, 18), Layer("output", 640, 262144, 1)))


@dataclass
class Shown:
    """A page as it is open in the browser, with everything that it asked for or complained about."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests. A machine without one fails: the marker was asked for."""
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of a board and of the mock on disk."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, report in (("board", board_report()), ("mock", mock_report())):
        made[name] = folder / f"{name}.html"
        made[name].write_text(render_html(as_saved(report), MODEL), encoding="ascii")
    return made


@pytest.fixture(
    scope="session", params=[(width, scheme) for width in WIDTHS for scheme in SCHEMES], ids=lambda p: f"{p[0]}-{p[1]}"
)
def shown(request: pytest.FixtureRequest, browser: Browser, files: dict[str, Path]) -> Iterator[Shown]:
    """The board's page at each width and in each scheme."""
    width, scheme = request.param
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme)
    opened = Shown(context.new_page())
    opened.page.on("request", lambda sent: opened.requests.append(sent.url))
    opened.page.on("console", lambda message: opened.complaints.append(message.text))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.goto(files["board"].as_uri(), timeout=120_000)
    yield opened
    context.close()
