# SPDX-License-Identifier: Apache-2.0
"""Why speculative output differs from greedy: the first token that differs, what the target saw there, and a verdict.

Both generations are deterministic, so they are run again with every pass watched at the position that decided the
token: its input, each intermediate result in the order of computation, and its logits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import numpy as np

from reference_engine.speculation.verify import Rows, Run, SequenceModel, Step, chosen, generate

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

    from reference_engine.graphs.common import Trace
    from reference_engine.speculation.stack import Stack

    F32 = NDArray[np.float32]

NEAR_TIE = "near tie under another reduction order"
CACHE_FAULT = "cache fault"
DRAFTER_LEAK = "drafter leak"
BUG = "bug"

NEAR_RELATIVE = 1e-3
"""Logits that differ by less than this share of their range are the same numbers summed in another order."""

_OF_THE_CACHE = ("kqv_out", "conv_output_silu", "linear_attn_state_out")
"""Results that depend on earlier positions; all others depend on their own row alone."""


class Traced(SequenceModel, Protocol):
    """A model whose passes can be watched, and whose cache can be hashed."""

    trace: Trace | None

    def cache_sha256(self) -> str:
        """Over every cell."""


@dataclass
class Seen:
    """What one generation saw where the token was decided.

    ``text``: the tokens at positions 0 to that one. ``width``, ``row``: of the pass that computed it. ``steps``: names,
    layers and rows of its intermediate results in order. ``logits`` float32 [n_vocab].
    """

    text: tuple[int, ...] = ()
    width: int = 0
    row: int = 0
    steps: list[tuple[str, int, F32]] = field(default_factory=list)
    logits: F32 | None = None


@dataclass(frozen=True)
class Divergence:
    """``index`` counts generated tokens from 0, ``position`` is that of the row that decided it.

    ``gap_nats`` and ``gap_ulp``: between the two highest logits of the greedy row. ``largest_difference`` is between
    the two rows. ``first_step``: name and layer of the first intermediate result with other bits, None where none has.
    """

    index: int
    position: int
    greedy_token: int | None
    speculative_token: int | None
    cause: str
    why: str
    gap_nats: float
    gap_ulp: float
    largest_difference: float
    first_step: tuple[str, int] | None
    greedy: Seen
    speculative: Seen

    def sentence(self) -> str:
        return (
            f"token {self.index} is {self.greedy_token} by greedy and {self.speculative_token} by speculation "
            f"({self.cause}): {self.why}"
        )

    def lines(self) -> list[str]:
        """Both rows of logits, the gap between the two highest, the shapes of the passes, and where bits part."""
        where = "nowhere" if self.first_step is None else f"from {self.first_step[0]}"
        if self.first_step is not None and self.first_step[1] >= 0:
            where += f" of layer {self.first_step[1]} on"
        gaps = f"{self.gap_nats:.3g} nats apart, {self.gap_ulp:.3g} units of the last place"
        shapes = [f"row {seen.row} of {seen.width}" for seen in (self.greedy, self.speculative)]
        return [
            f"greedy row:      {_highest(self.greedy)}",
            f"speculative row: {_highest(self.speculative)}",
            f"greedy's highest two are {gaps}; the rows differ by up to {self.largest_difference:.3g}",
            f"position {self.position}: {shapes[0]} by greedy, {shapes[1]} by speculation; bits differ {where}",
        ]


def highest(logits: F32 | None, count: int = 5) -> list[tuple[int, float]]:
    """(token, logit) of the highest, the lower id first where equal; none where there is no row."""
    if logits is None:
        return []
    order = np.argsort(-logits, kind="stable")[:count]
    return [(int(token), float(logits[token])) for token in order]


def _highest(seen: Seen) -> str:
    return ", ".join(f"{token} {logit:.6g}" for token, logit in highest(seen.logits)) or "no pass covered the position"


def first_difference(one: Sequence[int], other: Sequence[int]) -> int | None:
    """Index of the first token in which they differ, or at which one of them ends."""
    for i, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if mine != theirs:
            return i
    return None if len(one) == len(other) else min(len(one), len(other))


def explain(
    make: Callable[[], tuple[Traced, Stack]],
    prompt: Sequence[int],
    *,
    n_predict: int,
    eog: Collection[int] = (),
) -> Divergence | None:
    """None where both generations are the same. ``make`` gives a target with an empty cache and fresh strategies."""
    leaks: list[int] = []
    plain = generate(make()[0], None, prompt, n_predict=n_predict, eog=eog)
    target, stack = make()
    run = generate(target, stack, prompt, n_predict=n_predict, eog=eog)
    index = first_difference(plain.tokens, run.tokens)
    if index is None:
        return None
    position = len(prompt) - 1 + index
    watch = _Watched(make()[0], position)
    generate(watch, None, prompt, n_predict=index + 1, eog=eog)
    target, stack = make()
    watch_too = _Watched(target, position)
    guarded = _Guarded(stack, target, leaks)
    _until(watch_too, guarded, prompt, n_predict=n_predict, eog=eog, position=position)
    return _judged((index, position), (plain, run), (watch.seen, watch_too.seen), leaks)


class _Done(Exception):
    """The pass that was waited for is over."""


def _until(
    target: _Watched, stack: _Guarded, prompt: Sequence[int], *, n_predict: int, eog: Collection[int], position: int
) -> None:
    """Generate until the step after which ``position`` is decided for good."""

    def stop(step: Step) -> None:
        if step.position + len(step.tokens) > position:
            raise _Done

    try:
        generate(target, stack, prompt, n_predict=n_predict, eog=eog, on_step=stop)  # type: ignore[arg-type]
    except _Done:
        return


class _Watched:
    """Keeps what the last pass over one position computed there."""

    def __init__(self, target: Traced, position: int) -> None:
        self.target, self.position = target, position
        self.n_ctx, self.n_vocab = target.n_ctx, target.n_vocab
        self.seen = Seen()
        self._held: list[int] = []

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        row = self.position - first
        if not 0 <= row < len(tokens):
            self._held[first:] = tokens
            return self.target.forward(tokens, first)
        seen = Seen((*self._held[:first], *tokens[: row + 1]), len(tokens), row)

        def trace(name: str, layer: int, array: F32) -> None:
            # A chunk of a longer pass shows its own rows only; passes of speculation are one chunk.
            if len(array) > row:
                seen.steps.append((name, layer, np.array(array[row])))

        self.target.trace = trace
        try:
            rows = self.target.forward(tokens, first)
        finally:
            self.target.trace = None
        seen.logits = np.array(rows.logits[row])
        self.seen = seen
        self._held[first:] = tokens
        return rows

    def fill(self, tokens: Sequence[int], first: int, *, hidden: bool) -> F32 | None:
        self._held[first:] = tokens
        return self.target.fill(tokens, first, hidden=hidden)

    def truncate(self, n_past: int) -> None:
        del self._held[n_past:]
        self.target.truncate(n_past)


class _Guarded:
    """A stack during whose drafting the target's cache must not change; positions at which it did go to ``leaks``."""

    def __init__(self, stack: Stack, target: Traced, leaks: list[int]) -> None:
        self._stack, self._target, self._leaks = stack, target, leaks

    def draft(self, now: object) -> list[int]:
        before = self._target.cache_sha256()
        draft = self._stack.draft(now)  # type: ignore[arg-type]
        if self._target.cache_sha256() != before:
            self._leaks.append(len(now.tokens))  # type: ignore[attr-defined]
        return draft

    def __getattr__(self, name: str) -> object:
        return getattr(self._stack, name)


def _judged(where: tuple[int, int], runs: tuple[Run, Run], seen: tuple[Seen, Seen], leaks: Sequence[int]) -> Divergence:
    (index, position), (plain, run), (greedy, speculative) = where, runs, seen
    gap_nats, gap_ulp = _gap(greedy.logits)
    largest = _largest(greedy.logits, speculative.logits)
    step = _first_step(greedy, speculative)
    cause, why = _cause(greedy, speculative, step, leaks, _token(run.tokens, index))
    return Divergence(
        index,
        position,
        _token(plain.tokens, index),
        _token(run.tokens, index),
        cause,
        why,
        gap_nats,
        gap_ulp,
        largest,
        step,
        greedy,
        speculative,
    )


def _token(tokens: Sequence[int], index: int) -> int | None:
    return tokens[index] if index < len(tokens) else None


def _cause(
    greedy: Seen, speculative: Seen, step: tuple[str, int] | None, leaks: Sequence[int], token: int | None
) -> tuple[str, str]:
    if leaks:
        return DRAFTER_LEAK, f"drafting at position {leaks[0]} changed the target's cache"
    if speculative.logits is None or greedy.logits is None:
        return BUG, "no pass of the target covered the position: a token was made up or left out"
    if speculative.text != greedy.text:
        at = first_difference(greedy.text, speculative.text)
        return BUG, f"the target was given another text: it differs at position {at}, before any arithmetic"
    if step is None:
        if token == chosen(greedy.logits):
            return BUG, "both rows have the same bits and the token is theirs: it was put at another place in the text"
        return BUG, "both rows have the same bits; the verification chose a token that is not the row's"
    if token != chosen(speculative.logits):
        return BUG, "the token is not the one that the row of its own pass decides: no rounding explains that"
    name, layer = step
    where = f"bits first differ in {name}" + (f" of layer {layer}" if layer >= 0 else "")
    shape = f"rows of passes of width {greedy.width} and {speculative.width}"
    span = float(np.ptp(greedy.logits)) or 1.0
    if _largest(greedy.logits, speculative.logits) < NEAR_RELATIVE * span and greedy.width != speculative.width:
        return NEAR_TIE, f"{where} ({shape}), by less than {NEAR_RELATIVE:g} of the logits' range"
    if name in _OF_THE_CACHE:
        return CACHE_FAULT, f"{where}: the same text and the same row, but other keys, values or state behind it"
    if name.endswith("_rope"):
        return BUG, f"{where}: the row was computed as if it stood at another position"
    return BUG, f"{where} ({shape}), which depends on its own row alone"


def _first_step(one: Seen, other: Seen) -> tuple[str, int] | None:
    for (name, layer, mine), (_, _, theirs) in zip(one.steps, other.steps, strict=False):
        if mine.tobytes() != theirs.tobytes():
            return name, layer
    if one.logits is not None and other.logits is not None and one.logits.tobytes() != other.logits.tobytes():
        return "result_output", -1
    return None


def _gap(logits: F32 | None) -> tuple[float, float]:
    """Between the two highest: in nats, and in units of the last place of the highest."""
    if logits is None or len(logits) < 2:
        return 0.0, 0.0
    second, first = np.sort(logits)[-2:]
    gap = float(first) - float(second)
    return gap, gap / float(np.spacing(np.abs(first)))


def _largest(one: F32 | None, other: F32 | None) -> float:
    if one is None or other is None:
        return 0.0
    return float(np.max(np.abs(one.astype(np.float64) - other.astype(np.float64))))
