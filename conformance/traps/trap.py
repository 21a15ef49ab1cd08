# SPDX-License-Identifier: Apache-2.0
"""A trap model: a file, a prompt, the only right answer, and what each wrong answer proves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance.traps.blueprint import NOTHING, NOTHING_TEXT, Blueprint

UNLESS = "(unless trap"
"""What the name of a fault goes on with where another trap has to be looked at first."""


@dataclass(frozen=True)
class Design:
    """What a trap is before its file is written.

    ``prompt`` and ``tokens`` are ids, ``tokens`` the greedy continuation. ``wrong``: the first wrong token to the fault
    that it proves, as ``"TOKEN"``, ``"STEP:TOKEN"`` (a step of the continuation, from 0) or, where the token after it
    matters, ``"STEP:TOKEN+NEXT"``. ``fault`` is the fault that the trap is built for.
    """

    name: str
    fault: str
    blueprint: Blueprint
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    wrong: Mapping[str, str]

    def text_of(self, ids: Sequence[int]) -> str:
        """The text of some tokens."""
        texts = self.blueprint.texts()
        return "".join(texts[token] for token in ids)


@dataclass(frozen=True)
class Trap:
    """A trap whose file is at ``path``.

    ``prompt_text`` tokenizes to ``prompt`` (nothing is added before or behind it). ``margins_nats``: how far each right
    token stands above the second, the least over all pipelines that the manifest names.
    """

    name: str
    path: Path
    fault: str
    prompt: tuple[int, ...]
    prompt_text: str
    tokens: tuple[int, ...]
    text: str
    margins_nats: tuple[float, ...]
    wrong: Mapping[str, str]


def first_difference(trap: Trap | Design, ids: Sequence[int]) -> int | None:
    """The first step whose token is wrong or missing; None where all are right. More tokens than asked for are fine."""
    for step, right in enumerate(trap.tokens):
        if step >= len(ids) or ids[step] != right:
            return step
    return None


def proven_fault(trap: Trap | Design, ids: Sequence[int]) -> str | None:
    """The fault that the first wrong token proves; None where nothing is wrong, or where it proves none."""
    step = first_difference(trap, ids)
    if step is None or step >= len(ids):
        return None
    here = f"{step}:{ids[step]}"
    keys = [f"{here}+{ids[step + 1]}"] if step + 1 < len(ids) else []
    return next((trap.wrong[key] for key in (*keys, here, str(ids[step])) if key in trap.wrong), None)


def diagnose(trap: Trap | Design, ids: Sequence[int]) -> str:
    """One sentence: right, or which fault this wrong answer proves."""
    step = first_difference(trap, ids)
    if step is None:
        return f"trap {trap.name}: right, all {len(trap.tokens)} tokens."
    if step >= len(ids):
        return (
            f"trap {trap.name}: {len(ids)} of {len(trap.tokens)} tokens, all right so far; "
            "ask for as many as are expected, and let nothing end the text before."
        )
    where = f"trap {trap.name}: token {step} of the answer is {ids[step]}, not {trap.tokens[step]}"
    fault = proven_fault(trap, ids)
    if fault is not None:
        return f"{where}: {fault}."
    if ids[step] == NOTHING:
        return f"{where}, {NOTHING_TEXT!r}: the layers or the head gave nothing (zeros or NaN), which proves no more."
    return f"{where}: wrong, but it proves none of the faults that this trap is built for ({trap.fault})."
