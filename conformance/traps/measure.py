# SPDX-License-Identifier: Apache-2.0
"""Runs a trap through this kit's engine: greedy tokens and the margin of each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from conformance.traps.records import LEAST_NATS, Margins
from conformance.traps.trap import Design, Trap
from reference_engine.backends import Backend, make_backend
from reference_engine.backends.presets import PRESETS
from reference_engine.model import KvOptions, Model
from reference_engine.session import Session

if TYPE_CHECKING:
    from numpy.typing import NDArray

KV_TYPES = ("f32", "f16", "q8_0")
PIPELINES = ("float", *(f"npu:{name}" for name in PRESETS))
"""Back ends under which a trap is tried; those with 4 bits are right where a trap's numbers allow it."""


def answer(
    path: Path, prompt: Sequence[int], count: int, backend: str | Backend = "float", **options: object
) -> tuple[list[int], tuple[float, ...]]:
    """Greedy continuation of ``count`` tokens and how far each stands above the second, in nats.

    ``options``: those of :meth:`reference_engine.model.Model.load`.
    """
    made = make_backend(backend) if isinstance(backend, str) else backend
    with Model.load(path, made, **options) as model:  # type: ignore[arg-type]
        return continued(model, prompt, count)


def continued(model: Model, prompt: Sequence[int], count: int) -> tuple[list[int], tuple[float, ...]]:
    """The same with a loaded model."""
    session = Session(model)
    logits = session.feed(prompt)
    tokens, margins = [], []
    for step in range(count):
        token, margin = _first_two(logits)
        tokens.append(token)
        margins.append(margin)
        if step + 1 < count:
            logits = session.feed((token,))
    return tokens, tuple(margins)


def margins_of(design: Design | Trap, path: Path) -> Margins:
    """The pipelines under which every token is right by ``LEAST_NATS``, each with the least margins of all KV types."""
    found = {}
    for backend in PIPELINES:
        runs = [
            answer(path, design.prompt, len(design.tokens), backend, kv=KvOptions(kind, kind), flash=flash)
            for kind, flash in (("f32", False), ("f16", True), ("q8_0", False))
        ]
        least = tuple(min(steps) for steps in zip(*(margins for _, margins in runs), strict=True))
        if all(tuple(tokens) == design.tokens for tokens, _ in runs) and min(least) >= LEAST_NATS:
            found[backend] = least
    return found


def _first_two(logits: NDArray[np.float32]) -> tuple[int, float]:
    """The highest logit's token (the lowest id of several) and its distance to the second."""
    token = int(np.argmax(logits))
    return token, float(logits[token] - np.delete(logits, token).max())
