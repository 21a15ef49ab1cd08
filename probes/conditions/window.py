# SPDX-License-Identifier: Apache-2.0
"""The part of a sampled step that belongs to one of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from probes.conditions.sample import Phase, Sample


def between(samples: Sequence[Sample], start_s: float, end_s: float) -> tuple[Sample, ...]:
    """The samples of a row that ran from ``start_s`` to ``end_s``, monotonic seconds, with their phases set
    anew.

    A probe measures several rows in one step and prepares each of them, so a sample during the step may
    show the clock of an idle NPU. Kept are those inside, and on each side the nearest one that holds the
    load (or, without any, the nearest). ValueError when the row ends before it starts.
    """
    if end_s < start_s:
        raise ValueError(f"a row cannot end at {end_s} s before it starts at {start_s} s")
    before = [sample for sample in samples if sample.at_s < start_s]
    inside = [sample for sample in samples if start_s <= sample.at_s <= end_s]
    after = [sample for sample in samples if sample.at_s > end_s]
    return (
        *_nearest(before[::-1], Phase.BEFORE),
        *(replace(sample, phase=Phase.DURING) for sample in inside),
        *_nearest(after, Phase.AFTER),
    )


def _nearest(samples: Sequence[Sample], phase: Phase) -> tuple[Sample, ...]:
    chosen = next((sample for sample in samples if sample.load is not None), samples[0] if samples else None)
    return () if chosen is None else (replace(chosen, phase=phase),)
