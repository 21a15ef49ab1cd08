# SPDX-License-Identifier: Apache-2.0
"""Several strategies at once: asked in a fixed order, the first that drafts wins."""

from __future__ import annotations

from collections.abc import Sequence

from reference_engine.speculation.drafter import Drafter, Round, SpeculationError, TargetBatch
from reference_engine.speculation.statistics import Statistics

ORDER = (
    "ngram-simple",
    "ngram-map-k",
    "ngram-map-k4v",
    "ngram-mod",
    "ngram-cache",
    "draft-simple",
    "draft-mtp",
)
"""llama.cpp b11434 asks in this order whatever order was typed: with draft-mtp and ngram-cache the n-grams go first."""


class Stack:
    """One or more strategies as one. Stacking is a fall-back, never a merging of drafts.

    SpeculationError for a strategy named twice.
    """

    def __init__(self, drafters: Sequence[Drafter]) -> None:
        names = [drafter.name for drafter in drafters]
        if len(set(names)) != len(names):
            raise SpeculationError(f"a strategy is named twice: {', '.join(names)}")
        self.drafters = sorted(drafters, key=lambda drafter: ORDER.index(drafter.name))
        self.statistics = [Statistics(drafter.name) for drafter in self.drafters]
        self._drafted_by: int | None = None

    @property
    def name(self) -> str:
        return ",".join(drafter.name for drafter in self.drafters)

    @property
    def wants_hidden(self) -> bool:
        """A strategy reads the target's hidden state."""
        return any(drafter.wants_hidden for drafter in self.drafters)

    def begin(self, tokens: Sequence[int]) -> None:
        self._drafted_by = None
        for drafter, counts in zip(self.drafters, self.statistics, strict=True):
            drafter.begin(tokens)
            counts.n_call_begin += 1

    def process(self, batch: TargetBatch) -> None:
        for drafter in self.drafters:
            drafter.process(batch)

    def draft(self, now: Round) -> list[int]:
        """At most ``now.n_max`` tokens."""
        self._drafted_by = None
        if now.n_max <= 0:
            return []
        for i, (drafter, counts) in enumerate(zip(self.drafters, self.statistics, strict=True)):
            draft = drafter.draft(now)[: now.n_max]
            counts.n_call_draft += 1
            if draft:
                counts.generated(len(draft))
                self._drafted_by = i
                return draft
        return []

    def accept(self, n_accepted: int, n_past: int) -> None:
        for i, (drafter, counts) in enumerate(zip(self.drafters, self.statistics, strict=True)):
            own = i == self._drafted_by
            drafter.accept(n_accepted, n_past, own=own)
            if own:
                counts.accepted(n_accepted)
