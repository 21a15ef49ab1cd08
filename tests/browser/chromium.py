# SPDX-License-Identifier: Apache-2.0
"""The system's Chromium, driven by playwright; playwright's own download is not used."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoChromium(RuntimeError):
    """No browser on this machine. The text names the package."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless browser. RKNPU_KIT_CHROMIUM names another program than the one found by name."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  of the extra browser

    found = os.environ.get("RKNPU_KIT_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise NoChromium("no Chromium on this machine: apt-get install chromium, or name one by RKNPU_KIT_CHROMIUM")
    with sync_playwright() as playwright:
        # As root, and in a container, Chromium's own sandbox cannot be set up.
        launched = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"])
        try:
            yield launched
        finally:
            launched.close()
