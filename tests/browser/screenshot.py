# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.browser.screenshot PAGE.html PICTURE.png``: the page on a desk in light, on a phone in dark.

For the README. The picture holds 255 colours, so that it stays under 300 KB.
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path

from PIL import Image

from tests.browser.chromium import NoChromium, chromium

HEIGHT, DESK, PHONE, GAP = 1560, 1120, 390, 24
COLOURS = 255


def picture(page: Path) -> Image.Image:
    """Both views side by side; the phone's begins at the plots."""
    views = []
    with chromium() as browser:
        for width, scheme, start in ((DESK, "light", "body"), (PHONE, "dark", "#plots")):
            context = browser.new_context(viewport={"width": width, "height": HEIGHT}, color_scheme=scheme)  # type: ignore[arg-type]
            opened = context.new_page()
            opened.goto(page.resolve().as_uri(), timeout=120_000)
            opened.evaluate("start => document.querySelector(start).scrollIntoView()", start)
            views.append(Image.open(io.BytesIO(opened.screenshot())))
            context.close()
    whole = Image.new("RGB", (DESK + GAP + PHONE, HEIGHT), "#ffffff")
    whole.paste(views[0], (0, 0))
    whole.paste(views[1], (DESK + GAP, 0))
    return whole.quantize(COLOURS, dither=Image.Dither.NONE)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path, help="a page by reports show --html")
    parser.add_argument("picture", type=Path, help="the PNG to write")
    values = parser.parse_args()
    try:
        made = picture(values.page)
    except NoChromium as error:
        print(error, file=sys.stderr)
        return 3
    values.picture.parent.mkdir(parents=True, exist_ok=True)
    made.save(values.picture, optimize=True)
    print(f"{values.picture}: {values.picture.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
