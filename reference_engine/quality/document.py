# SPDX-License-Identifier: Apache-2.0
"""The JSON document of ``compare``: figures with their intervals, what they cover, and what they do not show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from reference_engine.quality.estimates import exponential, mean, share
from reference_engine.quality.evaluate import Floor, Outcome
from reference_engine.quality.kv import KvOutcome
from reference_engine.quality.matmuls import agreement
from reference_engine.quality.measures import RowMeasures

if TYPE_CHECKING:
    from reference_engine.backends import Backend, Counter

FORMAT = "rknpu-kit quality comparison"
FORMAT_VERSION = 1
NEAR_TIE = 1e-3
"""Logits this close at the top of the reference: which of both comes first is chance."""

_SHOWN_WEIGHTS = 5


def distance(rows: RowMeasures) -> dict[str, Any]:
    """KL divergence, same top, perplexity; intervals are of 95 %."""
    known = ~np.isnan(rows.surprise)
    surprise, base = rows.surprise[known], rows.reference_surprise[known]
    changed = ~rows.same_top
    return {
        "rows": len(rows.kl),
        "kl_mean": mean(rows.kl).as_json(),
        "kl_median": float(np.median(rows.kl)),
        "kl_p99": float(np.quantile(rows.kl, 0.99)),
        "kl_max": float(rows.kl.max()),
        "same_top": share(int(rows.same_top.sum()), len(rows.kl)).as_json(),
        "changed_tops": int(changed.sum()),
        "changed_near_ties": int((changed & (rows.gap < NEAR_TIE)).sum()),
        "changed_gap_median": float(np.median(rows.gap[changed])) if changed.any() else None,
        "perplexity": exponential(surprise).as_json() if len(surprise) else None,
        # Of the same tokens, so that most of the text's own scatter cancels.
        "perplexity_ratio": exponential(surprise - base).as_json() if len(surprise) else None,
    }


def saturation(counters: Mapping[str, Counter]) -> dict[str, Any] | None:
    """Quantised activations at the rim and beyond it, and the weights with the largest share beyond; None for float."""
    seen = {name: counter for name, counter in counters.items() if counter.elements}
    if not seen:
        return None
    total = sum(counter.elements for counter in seen.values())
    worst = sorted(seen.items(), key=lambda item: -item[1].clipped / item[1].elements)[:_SHOWN_WEIGHTS]
    return {
        "elements": total,
        "at_rim": sum(counter.rim for counter in seen.values()),
        "clipped": sum(counter.clipped for counter in seen.values()),
        "worst": [
            {"name": name, "elements": counter.elements, "clipped": counter.clipped}
            for name, counter in worst
            if counter.clipped
        ],
    }


def reference_entry(name: str, rows: RowMeasures, backend: Backend, floor: Floor | None) -> dict[str, Any]:
    """The first back end: it is measured against the text alone."""
    known = ~np.isnan(rows.reference_surprise)
    surprise = rows.reference_surprise[known]
    return {
        "backend": name,
        "perplexity": exponential(surprise).as_json() if len(surprise) else None,
        "saturation": saturation(backend.counters),
        "floor": floor_entry(floor),
        **simulated(backend),
    }


def other_entry(outcome: Outcome, reference: Outcome, backend: Backend, floor: Floor | None) -> dict[str, Any]:
    """A further back end against the first."""
    found = {
        "backend": outcome.name,
        **distance(outcome.rows),
        "layers": outcome.layers.as_json(),
        "saturation": saturation(backend.counters),
        "floor": floor_entry(floor),
        **simulated(backend),
    }
    if outcome.log is not None and reference.log is not None:
        held = agreement(reference.log, outcome.log)
        found["matmuls"] = {**asdict(held), "equal": held.equal}
    return found


def floor_entry(floor: Floor | None) -> dict[str, Any] | None:
    """What noise of 1e-7 alone does to this back end, and whether its batches have the bits of single tokens."""
    if floor is None:
        return None
    return {**distance(floor.rows), "alone_rows_equal": floor.alone, "alone_rows": floor.asked}


def simulated(backend: Backend) -> dict[str, Any]:
    """Of a device back end: whether an NPU answered."""
    note = getattr(backend, "note", None)
    return {} if note is None else {"simulated": True, "note": note}


def kv_entries(outcomes: Sequence[KvOutcome]) -> list[dict[str, Any]]:
    return [
        {
            "type_k": outcome.type_k,
            "type_v": outcome.type_v,
            "depth": outcome.depth,
            "cache_bytes": outcome.cache_bytes,
            **distance(outcome.rows),
        }
        for outcome in outcomes
    ]
