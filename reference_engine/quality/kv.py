# SPDX-License-Identifier: Apache-2.0
"""KV cache types at several context depths: what each costs in quality, and what it takes in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from reference_engine.errors import UsageError
from reference_engine.model import CHUNK, KvOptions
from reference_engine.quality.evaluate import slice_rows
from reference_engine.quality.measures import F32, RowMeasures, compare_rows

if TYPE_CHECKING:
    from reference_engine.kv_cache import KvCache
    from reference_engine.model import Model


@dataclass(frozen=True)
class KvOutcome:
    """One KV type at one depth against the first type at that depth. ``cache_bytes``: of all tokens held then."""

    type_k: str
    type_v: str
    depth: int
    rows: RowMeasures
    cache_bytes: int


def repeated(tokens: Sequence[int], count: int) -> tuple[list[int], int]:
    """``count`` tokens, the text from its beginning as often as needed, and how often it begins anew."""
    if not tokens:
        raise ValueError("the text has no tokens")
    times = -(-count // len(tokens))
    return (list(tokens) * times)[:count], times - 1


@dataclass(frozen=True)
class KvTask:
    """At each of ``depths`` the ``judged`` tokens behind it by each of ``kinds``, held against the first kind.

    ``tokens`` are at least the largest depth and ``judged`` more.
    """

    kinds: Sequence[KvOptions]
    depths: Sequence[int]
    tokens: Sequence[int]
    judged: int


def compare_kv(model: Model, task: KvTask, progress: Callable[[int, int], None] | None = None) -> list[KvOutcome]:
    """One outcome for each kind and depth, depths ascending. ContextFull where the model's context is too small."""
    ordered, tokens, judged = sorted(set(task.depths)), task.tokens, task.judged
    expected: dict[int, list[F32]] = {}
    found: list[KvOutcome] = []
    total, done = len(task.kinds) * (ordered[-1] + judged * len(ordered)), 0
    for kind in task.kinds:
        before, model.kv = model.kv, kind
        try:
            cache = model.new_cache()
            for depth in ordered:
                for start in range(cache.n_past, depth, CHUNK):
                    if progress is not None:
                        progress(done, total)
                    part = tokens[start : min(start + CHUNK, depth)]
                    model.forward(part, cache, rows=())
                    done += len(part)
                logits = _judge(model, cache, tokens[depth : depth + judged])
                size = sum(cache.bytes_used())
                base = expected.setdefault(depth, logits)
                found.append(
                    KvOutcome(kind.type_k, kind.type_v, depth, _rows(base, logits, tokens[depth:], judged), size)
                )
                done += judged
                cache = _back(model, cache, depth, tokens)
        finally:
            model.kv = before
    return found


def _judge(model: Model, cache: KvCache, part: Sequence[int]) -> list[F32]:
    step = slice_rows(model.n_vocab)
    return [model.forward(part[at : at + step], cache, rows="all").logits for at in range(0, len(part), step)]


def _rows(base: list[F32], logits: list[F32], tokens: Sequence[int], judged: int) -> RowMeasures:
    following: list[int | None] = [*tokens[1 : judged + 1]]
    following += [None] * (judged - len(following))
    parts, at = [], 0
    for a, b in zip(base, logits, strict=True):
        parts.append(compare_rows(a, b, following[at : at + len(a)]))
        at += len(a)
    return RowMeasures.joined(parts)


def _back(model: Model, cache: KvCache, depth: int, tokens: Sequence[int]) -> KvCache:
    """The cache as it was at ``depth``; filled anew where a layer with a window cannot go back that far."""
    try:
        cache.truncate(depth)
    except UsageError:
        cache = model.new_cache()
        for start in range(0, depth, CHUNK):
            model.forward(tokens[start : min(start + CHUNK, depth)], cache, rows=())
    return cache
