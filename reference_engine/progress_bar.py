# SPDX-License-Identifier: Apache-2.0
"""A progress bar on the error stream where that is a terminal and tqdm is there; else nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from reports.text import inert

DELAY_S = 0.3
"""What is done within this time shows no bar."""


class Bar:
    """``show(done, total, detail)``; without a terminal it does nothing."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, done: int, total: int, detail: str = "") -> None:
        if self._bar is None:
            return
        self._bar.total = max(total, 1)
        self._bar.n = done
        self._bar.set_postfix_str(inert(detail, 40), refresh=False)
        self._bar.refresh()


@contextmanager
def progress_bar(what: str, stream: TextIO, unit: str = "it") -> Iterator[Bar]:
    """A bar that is gone afterwards. ``unit`` "B": the numbers are bytes."""
    if not stream.isatty():
        yield Bar(None)
        return
    try:
        from tqdm import tqdm  # noqa: PLC0415  an optional package costs its own feature only
    except ImportError:
        yield Bar(None)
        return
    with tqdm(
        total=1, desc=what, unit=unit, unit_scale=unit == "B", file=stream, ascii=True, leave=False, delay=DELAY_S
    ) as bar:
        yield Bar(bar)
