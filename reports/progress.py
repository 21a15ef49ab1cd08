# SPDX-License-Identifier: Apache-2.0
"""Progress of long steps on the terminal's error stream: a bar where there is a terminal, a line a step where not."""

from __future__ import annotations

from typing import Any, TextIO

from reports.contract import Step
from reports.events import Event, Progress
from reports.text import inert


class ProgressSink:
    """Shows :class:`~reports.events.Progress` on ``stream``. Uses tqdm on a terminal when it is installed."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar: Any = None
        self._step = ""
        self._tqdm = _load_tqdm() if stream.isatty() else None

    def handle(self, event: Event, at: float) -> None:
        if isinstance(event, Progress):
            self._show(event)
        elif isinstance(event, Step):
            self._end_bar()

    def close(self) -> None:
        self._end_bar()

    def _show(self, event: Progress) -> None:
        if self._tqdm is None:
            if event.step != self._step:
                self._step = event.step
                print(f"... {inert(event.step)}", file=self._stream, flush=True)
            return
        if event.step != self._step or self._bar is None:
            self._end_bar()
            self._step = event.step
            self._bar = self._tqdm(
                total=max(event.total, 1), desc=inert(event.step), file=self._stream, ascii=True, leave=False
            )
        self._bar.total = max(event.total, 1)
        self._bar.n = event.done
        self._bar.set_postfix_str(inert(event.detail, 40), refresh=True)

    def _end_bar(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None


def _load_tqdm() -> Any:
    try:
        from tqdm import tqdm  # noqa: PLC0415  an optional package costs its own feature only
    except ImportError:
        return None
    return tqdm
