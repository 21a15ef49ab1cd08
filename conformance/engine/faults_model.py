# SPDX-License-Identifier: Apache-2.0
"""Faults of a loaded model, of its cache and of speculation. Each takes a model and spoils it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from reference_engine.graphs.common import RopeTable
from reference_engine.kv_cache_cells import TILE
from reference_engine.model import Forward, Model
from reference_engine.speculation import verify

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.kv_cache import KvCache


def _ropes(model: Model) -> dict[str, RopeTable]:
    return {name: value for name, value in vars(model.graph).items() if isinstance(value, RopeTable)}


def _remade(table: RopeTable, **changes: Any) -> RopeTable:
    made: Any = vars(table)["_tables"]
    parameters = {**made.keywords, **changes}
    return RopeTable(kernels=vars(table)["_kernels"], **parameters)


def rope_base(model: Model) -> None:
    """The base of the other kind of layer; where there is one kind, ten times the base."""
    tables = _ropes(model)
    bases = [vars(table)["_tables"].keywords["base"] for table in tables.values()]
    others = bases[::-1] if len(set(bases)) > 1 else [10.0 * base for base in bases]
    for (name, table), base in zip(tables.items(), others, strict=True):
        setattr(model.graph, name, _remade(table, base=base))


def rope_position(model: Model) -> None:
    for table in _ropes(model).values():
        at = table.at
        vars(table)["at"] = functools.partial(lambda inner, first, m: inner(first + 1, m), at)


def window(model: Model) -> None:
    model.graph.layer_windows = tuple(width + 1 if width else 0 for width in model.graph.layer_windows)


def head(model: Model) -> None:
    """Rows of the head are those of the tokens beside: another tensor, or one that was not found."""
    inner: Any = model.graph.head
    if inner is None:
        return

    def other(hidden: NDArray[np.float32], out: NDArray[np.float32]) -> NDArray[np.float32]:
        out[...] = np.roll(inner(hidden, np.empty_like(out)), 1, axis=1)
        return out

    vars(model.graph)["head"] = other


def head_missed(model: Model) -> None:
    """A loader that looks for output.weight alone leaves a tied head empty."""
    if model.graph.head is not None and "output.weight" not in model.file.tensors:
        vars(model.graph)["head"] = lambda hidden, out: out.fill(0)


def kv_rollback(model: Model) -> None:
    """What a rejected draft wrote stays: the token that takes its position does not overwrite it."""
    new_cache = model.new_cache

    def spoiled() -> KvCache:
        cache = new_cache()
        for index in range(len(model.layers)):
            if cache.has_layer(index):
                _keep_what_was(cache, cache.layer(index))
        return cache

    vars(model)["new_cache"] = spoiled


def _keep_what_was(cache: KvCache, layer: Any) -> None:
    append, truncate = layer.append, layer.truncate
    high = [0]

    def stale(k: Any, v: Any, positions: Any) -> None:
        kept = np.asarray(positions)[np.asarray(positions) < high[0]]
        cells = kept % layer.capacity
        tile, lane = np.divmod(cells, TILE)
        before = (layer.k_codes[:, tile, :, lane].copy(), layer.v_codes[:, cells].copy())
        append(k, v, positions)
        layer.k_codes[:, tile, :, lane], layer.v_codes[:, cells] = before
        high[0] = max(high[0], int(positions[-1]) + 1)

    def emptied(n_past: int) -> None:
        truncate(n_past)
        if n_past == 0:
            high[0] = 0

    vars(layer).update(append=stale, truncate=emptied)


def batch_order(model: Model) -> None:
    """Batches get another last digit than single tokens, as in llama.cpp's CPU back end."""
    forward = model.forward

    def other(tokens: Sequence[int], cache: KvCache, **options: Any) -> Forward:
        found = forward(tokens, cache, **options)
        return found if len(tokens) == 1 else Forward(found.logits * np.float32(1 + 2.0**-22), found.hidden)

    vars(model)["forward"] = other


def prompt_cache(model: Model) -> None:
    forward = model.forward
    seen: dict[tuple[int, ...], Forward] = {}

    def cached(tokens: Sequence[int], cache: KvCache, **options: Any) -> Forward:
        key = tuple(tokens)
        if cache.n_past or key not in seen:
            found = forward(tokens, cache, **options)
            if len(key) > 1:
                seen.setdefault(key, found)
            return found
        cache.n_past = len(key)
        return seen[key]

    vars(model)["forward"] = cached


def unverified() -> None:
    def taken(logits: NDArray[np.float32], draft: Sequence[int], eog: Collection[int]) -> list[int]:
        return [*draft, verify.chosen(logits[len(draft)])]

    vars(verify)["accepted"] = taken
