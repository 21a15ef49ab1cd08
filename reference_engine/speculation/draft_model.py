# SPDX-License-Identifier: Apache-2.0
"""draft-simple: a smaller model with the same vocabulary decodes ahead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.speculation.drafter import Round, TargetBatch
from reference_engine.speculation.verify import SequenceModel, chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

TOP_K = 10
"""The probability that ``p_min`` is held against is among the ten most likely tokens only (b11434)."""


def top_probability(logits: NDArray[np.float32]) -> float:
    """Softmax over the ``TOP_K`` highest of one row; the highest of it."""
    best = np.sort(logits.astype(np.float64))[-TOP_K:]
    return float(1.0 / np.exp(best - best[-1]).sum())


@dataclass
class DraftModel:
    """Names and defaults are llama.cpp's (``n_max`` 3, ``n_min`` 0, ``p_min`` 0).

    The draft's cache holds what the target's holds: ``process`` decodes every batch of the target here too, and
    ``accept`` takes back what was wrong.
    """

    model: SequenceModel
    n_max: int = 3
    n_min: int = 0
    p_min: float = 0.0
    name: str = "draft-simple"
    wants_hidden: bool = False
    _held: list[int] = field(default_factory=list)

    def begin(self, tokens: Sequence[int]) -> None:
        del tokens

    def process(self, batch: TargetBatch) -> None:
        wanted = [*self._held[: batch.first], *batch.tokens]
        same = 0
        while same < min(len(wanted), len(self._held)) and wanted[same] == self._held[same]:
            same += 1
        # What was decoded while drafting need not be decoded again: the bits are the same at any batch shape.
        self._keep(max(same, batch.first))
        rest = wanted[len(self._held) :]
        if rest:
            self.model.fill(rest, len(self._held), hidden=False)
            self._held += rest

    def draft(self, now: Round) -> list[int]:
        self._keep(len(now.tokens))
        draft: list[int] = []
        last = now.id_last
        while len(draft) < min(self.n_max, now.n_max):
            logits = self._decode([last])
            if self.p_min > 0 and top_probability(logits) < self.p_min:
                break
            last = chosen(logits)
            draft.append(last)
        return draft if len(draft) >= self.n_min else []

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        del n_accepted, own
        self._keep(n_past)

    def _decode(self, tokens: Sequence[int]) -> NDArray[np.float32]:
        rows = self.model.forward(tokens, len(self._held))
        self._held += tokens
        last: NDArray[np.float32] = rows.logits[-1]
        return last

    def _keep(self, n_past: int) -> None:
        if n_past < len(self._held):
            self.model.truncate(n_past)
            del self._held[n_past:]
