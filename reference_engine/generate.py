# SPDX-License-Identifier: Apache-2.0
"""Generation: tokens one after the other, their text as it becomes known, and a summary whatever ends it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from reference_engine.errors import UsageError

if TYPE_CHECKING:
    from reference_engine.sampling import Sampler
    from reference_engine.session import Session

END, STOP_TEXT, LENGTH, CONTEXT, INTERRUPTED = "end of text", "stop text", "length", "context full", "interrupted"


class Text(Protocol):
    """Ids to the text that is complete by then: the tokenizer's ``stream()``."""

    def feed(self, token: int) -> str: ...

    def finish(self) -> str: ...


@dataclass
class Summary:
    """``stop`` is END, STOP_TEXT, LENGTH, CONTEXT or INTERRUPTED. ``tokens`` are those generated, the end's not.

    ``decode_s`` is the time of all tokens behind the first, which comes out of the prefill's logits.
    """

    prompt_tokens: int
    tokens: list[int] = field(default_factory=list)
    prefill_s: float = 0.0
    decode_s: float = 0.0
    decoded: int = 0
    stop: str = LENGTH

    @property
    def prefill_per_s(self) -> float | None:
        """Prompt tokens per second; None where the prompt was not finished."""
        return self.prompt_tokens / self.prefill_s if self.prefill_s > 0 else None

    @property
    def decode_per_s(self) -> float | None:
        """Generated tokens per second; None where there were none behind the first."""
        return self.decoded / self.decode_s if self.decoded else None


class StopTexts:
    """Text on its way to the reader, held back as long as it may be the beginning of a stop text."""

    def __init__(self, stops: Sequence[str], emit: Callable[[str], None]) -> None:
        if any(not stop for stop in stops):
            raise UsageError("A stop text is empty: it would stop before the first token")
        self._stops, self._emit = tuple(stops), emit
        self._held = ""

    def feed(self, text: str) -> bool:
        """True where a stop text is complete; what stood before it has been given out, and nothing behind it."""
        self._held += text
        found = [at for at in (self._held.find(stop) for stop in self._stops) if at >= 0]
        if found:
            self._give(min(found))
            self._held = ""
            return True
        self._give(len(self._held) - self._beginning())
        return False

    def finish(self) -> None:
        """Nothing more comes: give out what was held back."""
        self._give(len(self._held))

    def _beginning(self) -> int:
        """Characters at the end that begin a stop text."""
        longest = 0
        for stop in self._stops:
            for size in range(min(len(stop) - 1, len(self._held)), longest, -1):
                if self._held.endswith(stop[:size]):
                    longest = size
                    break
        return longest

    def _give(self, count: int) -> None:
        if count:
            self._emit(self._held[:count])
            self._held = self._held[count:]


def generate(
    session: Session,
    prompt: Sequence[int],
    sampler: Sampler,
    *,
    limit: int,
    ends: Collection[int] = (),
    stops: Sequence[str] = (),
    text: Text | None = None,
    emit: Callable[[str], None] = lambda _: None,
    progress: Callable[[int, int], None] | None = None,
) -> Summary:
    """Feed ``prompt`` and generate up to ``limit`` tokens, or as many as the context takes where ``limit`` is negative.

    ``ends``: tokens that end the text, never shown. ``stops``: texts that end it, which need ``text``. ``emit`` gets
    the text piece by piece. Ctrl-C ends it at any point, and the summary tells what was done until then. ContextFull
    where the prompt alone does not fit, and NotFinite.
    """
    summary = Summary(prompt_tokens=len(prompt))
    out = StopTexts(stops, emit)
    try:
        started = time.perf_counter()
        logits = session.feed(prompt, progress)
        now = time.perf_counter()
        summary.prefill_s = now - started
        while len(summary.tokens) != limit:
            token = sampler(logits)
            if token in ends:
                summary.stop = END
                break
            summary.tokens.append(token)
            if text is not None and out.feed(text.feed(token)):
                summary.stop = STOP_TEXT
                break
            if len(summary.tokens) == limit:
                break
            if session.room == 0:
                summary.stop = CONTEXT
                break
            before = time.perf_counter()
            logits = session.feed((token,))
            summary.decode_s += time.perf_counter() - before
            summary.decoded += 1
    except KeyboardInterrupt:
        summary.stop = INTERRUPTED
    if text is not None and summary.stop != STOP_TEXT:
        out.feed(text.finish())
        out.finish()
    return summary
