# SPDX-License-Identifier: Apache-2.0
"""Colours of the page and its plots against their grounds, by the formula of WCAG 2.1."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import reports.html

CSS = (Path(reports.html.__file__).parent / "templates" / "style.css").read_text(encoding="utf-8")


def variables(scheme: str) -> dict[str, str]:
    light, dark = CSS.split("@media (prefers-color-scheme: dark)", 1)
    dark = dark[: dark.index("}\n}")]
    found = dict(re.findall(r"(--[a-z0-9-]+): (#[0-9a-f]{6})", light if scheme == "light" else dark))
    assert len(found) >= 24, scheme
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_the_formula_gives_the_known_ends() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_reaches_aa_on_every_ground_it_stands_on(scheme: str) -> None:
    found = variables(scheme)
    grounds = [found["--ground"], found["--panel"]]
    for ink in ("--ink", "--faint", "--link", "--good", "--warning", "--error", "--plot-ink"):
        assert min(contrast(found[ink], ground) for ground in grounds) >= 4.5, ink
    for name in ("good", "warning", "error", "loud"):
        assert contrast(found[f"--{name}"], found[f"--{name}-ground"]) >= 4.5, name
    assert contrast(found["--ink"], found["--plain-ground"]) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_lines_and_marks_of_plots_reach_three_to_one(scheme: str) -> None:
    found = variables(scheme)
    for index in range(6):
        assert contrast(found[f"--plot-{index}"], found["--panel"]) >= 3, index


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_two_series_share_a_colour(scheme: str) -> None:
    found = variables(scheme)
    assert len({found[f"--plot-{index}"] for index in range(6)}) == 6
