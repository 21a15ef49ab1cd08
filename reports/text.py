# SPDX-License-Identifier: Apache-2.0
"""Text for a terminal, from data that may come from anywhere: inert, ASCII, aligned."""

from __future__ import annotations

import os
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TextIO

_ASCII = {
    "\u2013": "-",
    "\u2014": "-",
    "\u2192": "->",
    "\u00d7": "x",
    "\u00b5": "u",
    "\u00b0": "deg",
    "\u2026": "...",
}


def inert(value: object, limit: int = 2000) -> str:
    """``value`` as one line of printable ASCII: no control character, no escape sequence, cut at ``limit``."""
    text = str(value)
    cut = len(text) > limit
    if text.isascii() and text.isprintable():  # what most text is, told at once
        return text[:limit] + ("..." if cut else "")
    out: list[str] = []
    for char in text[:limit]:
        if " " <= char <= "~":
            out.append(char)
        elif char in "\n\r\t":
            out.append(" ")
        elif char in _ASCII:
            out.append(_ASCII[char])
        else:
            plain = unicodedata.normalize("NFKD", char).encode("ascii", "ignore").decode("ascii")
            out.append(plain if plain.isprintable() and plain else "?")
    return "".join(out) + ("..." if cut else "")


def colour_wanted(stream: TextIO, env: Mapping[str, str] | None = None) -> bool:
    """Colour only on a terminal that can show it, and never with NO_COLOR set (to anything but nothing)."""
    env = os.environ if env is None else env
    return stream.isatty() and not env.get("NO_COLOR") and env.get("TERM", "") not in ("", "dumb")


def wrapped(text: str, indent: str, width: int, first: str | None = None) -> list[str]:
    """``text`` in lines of at most ``width``, the first one behind ``first``, the others behind ``indent``."""
    return textwrap.wrap(
        text,
        width=width,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    ) or [(indent if first is None else first).rstrip()]


def table(rows: Sequence[Sequence[str]], headers: Sequence[str], align: Sequence[str]) -> list[str]:
    """Rows as aligned columns, by tabulate where it is installed and by the same rule in plain code where not.

    ``align`` holds "left" or "right" for each column.
    """
    widths = [max([len(header), *(len(row[i]) for row in rows)]) for i, header in enumerate(headers)]
    grid = [list(headers), ["-" * width for width in widths], *(list(row) for row in rows)]
    try:
        from tabulate import tabulate  # noqa: PLC0415  an optional package costs its own feature only
    except ImportError:
        return [_plain_line(cells, widths, align) for cells in grid]
    # The heading goes in as a row: as a heading each column would get two columns of padding on top.
    text = tabulate(grid, tablefmt="plain", colalign=list(align), disable_numparse=True)
    return [line.rstrip() for line in text.splitlines()]


def _plain_line(cells: Sequence[str], widths: Sequence[int], align: Sequence[str]) -> str:
    parts = (
        cell.rjust(width) if side == "right" else cell.ljust(width)
        for cell, width, side in zip(cells, widths, align, strict=True)
    )
    return "  ".join(parts).rstrip()
