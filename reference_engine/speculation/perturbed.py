# SPDX-License-Identifier: Apache-2.0
"""A target as other engines are: passes over several rows sum in another order than passes over one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.verify import Rows

COARSE = 8
"""Logits are rounded to this part of their span, so that near ties, rare in a short text, happen."""

NOISE = 1e-6


class AnotherOrder(EngineSequence):
    """Rows of a pass over several tokens differ from those of single tokens by a millionth of the logits' span."""

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        rows = super().forward(tokens, first)
        span = np.ptp(rows.logits, axis=1, keepdims=True)
        step = span / np.float32(COARSE)
        logits = np.round(rows.logits / step) * step
        noise = span * np.linspace(0, NOISE, logits.shape[1], dtype=np.float32)
        return Rows(logits + noise if len(tokens) > 1 else logits - noise, rows.hidden)
