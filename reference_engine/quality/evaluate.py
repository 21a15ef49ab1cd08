# SPDX-License-Identifier: Apache-2.0
"""Runs one text through a reference and others, teacher-forced, and keeps what parts them. Logits are never stored."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.quality.layers import LayerErrors
from reference_engine.quality.matmuls import MatmulLog
from reference_engine.quality.measures import RowMeasures, compare_rows
from reference_engine.quality.noise import with_noise

if TYPE_CHECKING:
    from reference_engine.model import Model

_LOGIT_BYTES = 64 << 20
_ALONE = 8
MAX_SLICE = 256

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Text:
    """``chunks`` of token ids, each computed by itself. The first ``skip`` rows of each are not judged: they have less
    context than a reader would have.
    """

    chunks: tuple[tuple[int, ...], ...]
    skip: int = 0

    @property
    def tokens(self) -> int:
        return sum(len(chunk) for chunk in self.chunks)


def cut(tokens: Sequence[int], n_ctx: int, bos: int | None, most: int | None = None, skip: int = 0) -> Text:
    """Chunks of ``n_ctx`` tokens, at most ``most`` of them. With ``bos`` each one begins with it, as llama-perplexity
    has it; a last chunk too short to judge anything is left out. ValueError where nothing remains.
    """
    body = list(tokens[1:] if bos is not None and tokens and tokens[0] == bos else tokens)
    head = [] if bos is None else [bos]
    step = n_ctx - len(head)
    if step < 2 or skip >= n_ctx - 1:
        raise ValueError(f"chunks of {n_ctx} tokens, of which {skip} are skipped, leave nothing to judge")
    chunks = [tuple(head + body[at : at + step]) for at in range(0, len(body), step)]
    judged = [chunk for chunk in chunks if len(chunk) > skip + 1][:most]
    if not judged:
        raise ValueError(f"the text has {len(tokens)} tokens: too few to judge any beyond the first {skip}")
    return Text(tuple(judged), skip)


@dataclass
class Outcome:
    """What was seen of one model. ``rows`` are None for the reference itself, whose own surprises the others hold."""

    name: str
    parts: list[RowMeasures] = field(default_factory=list)
    layers: LayerErrors = field(default_factory=LayerErrors)
    log: MatmulLog | None = None

    @property
    def rows(self) -> RowMeasures:
        return RowMeasures.joined(self.parts)


@dataclass(frozen=True)
class Floor:
    """``rows``: the model against itself with shaken norms. ``alone`` of ``asked`` rows had the bits of the batch when
    computed token by token.
    """

    rows: RowMeasures
    alone: int
    asked: int


def slice_rows(n_vocab: int) -> int:
    """Rows computed at a time, so that their logits take at most 64 MiB."""
    return max(1, min(MAX_SLICE, _LOGIT_BYTES // (4 * n_vocab)))


def evaluate(
    models: Sequence[tuple[str, Model]], text: Text, *, matmuls: bool = False, progress: Progress | None = None
) -> list[Outcome]:
    """One outcome for each model, the reference first. ``matmuls`` keeps a digest of each product, which is slow."""
    outcomes = [Outcome(name, log=MatmulLog() if matmuls else None) for name, _ in models]
    (_, reference), *_ = models
    done = 0
    with contextlib.ExitStack() as stack:
        for (_, model), outcome in zip(models, outcomes, strict=True):
            outcome.layers.share_reference(outcomes[0].layers)
            if outcome.log is not None:
                stack.enter_context(observed(model, outcome.log))
        for chunk in text.chunks:
            caches = [model.new_cache() for _, model in models]
            step = slice_rows(reference.n_vocab)
            for start in range(0, len(chunk), step):
                if progress is not None:
                    progress(done, text.tokens)
                part = chunk[start : start + step]
                rows = range(max(text.skip - start, 0), len(part))
                following = [*chunk[start + 1 : start + step + 1], None][: len(part)]
                base = reference.forward(part, caches[0], rows=rows, trace=outcomes[0].layers.keep)
                targets = [following[row] for row in rows]
                for (_, model), cache, outcome in zip(models[1:], caches[1:], outcomes[1:], strict=True):
                    found = model.forward(part, cache, rows=rows, trace=outcome.layers.compare)
                    if rows:
                        outcome.parts.append(compare_rows(base.logits, found.logits, targets))
                done += len(part)
    return outcomes


def noise_floor(model: Model, chunk: Sequence[int], seed: int = 1) -> Floor:
    """The model against itself on one chunk: shaken norms, and token by token."""
    ops = model.ops
    parts = []
    plain, shaken = model.new_cache(), model.new_cache()
    step = slice_rows(model.n_vocab)
    noisy = with_noise(ops, seed)
    first = None
    for start in range(0, len(chunk), step):
        part = chunk[start : start + step]
        base = model.forward(part, plain, rows="all")
        first = base.logits[:_ALONE].copy() if first is None else first
        try:
            model.ops = noisy
            other = model.forward(part, shaken, rows="all")
        finally:
            model.ops = ops
        parts.append(compare_rows(base.logits, other.logits, [*chunk[start + 1 : start + step + 1], None][: len(part)]))
    assert first is not None
    alone = model.new_cache()
    rows = [model.forward([token], alone).logits[0] for token in chunk[: len(first)]]
    same = sum(np.array_equal(a.view(np.uint32), b.view(np.uint32)) for a, b in zip(first, rows, strict=True))
    return Floor(RowMeasures.joined(parts), same, len(first))


@contextlib.contextmanager
def observed(model: Model, log: MatmulLog) -> Iterator[None]:
    """``log`` sees every matmul of the model meanwhile."""
    before = model.backend.observer
    model.backend.observer = log
    try:
        yield
    finally:
        model.backend.observer = before
