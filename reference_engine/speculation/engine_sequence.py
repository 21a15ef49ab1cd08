# SPDX-License-Identifier: Apache-2.0
"""A model of this engine with one KV cache, as speculation sees it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.verify import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.graphs.common import Trace
    from reference_engine.kv_cache import KvCache
    from reference_engine.model import Model

    F32 = NDArray[np.float32]


class EngineSequence:
    """``passes`` counts forward passes, ``trace`` sees their intermediate results where it is set."""

    def __init__(self, model: Model, progress: Callable[[int, int], None] | None = None) -> None:
        self.model = model
        self.cache: KvCache = model.new_cache()
        self.n_ctx, self.n_vocab = model.n_ctx, model.n_vocab
        self.passes = 0
        self.trace: Trace | None = None
        self._progress = progress

    def forward(self, tokens: Sequence[int], first: int) -> Rows:
        """SpeculationError where the cache does not end just before ``first``; else as Model.forward."""
        self._check(first)
        self.passes += 1
        out = self.model.forward(tokens, self.cache, rows="all", trace=self.trace)
        return Rows(out.logits, out.hidden)

    def fill(self, tokens: Sequence[int], first: int, *, hidden: bool) -> F32 | None:
        self._check(first)
        out = self.model.forward(
            tokens, self.cache, rows="all" if hidden else [], trace=self.trace, progress=self._progress
        )
        return out.hidden if hidden else None

    def truncate(self, n_past: int) -> None:
        self.cache.truncate(n_past)

    def cache_sha256(self) -> str:
        """Over every cell and state of every layer: what a draft must not change."""
        digest = hashlib.sha256()
        for index in range(len(self.model.layers)):
            with contextlib.suppress(LookupError):
                layer = self.cache.layer(index)
                for array in (layer.k_codes, layer.k_scales, layer.v_codes, layer.v_scales):
                    digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        for state in self.cache.states:
            if state is not None:
                digest.update(state.matrix.tobytes() + state.rows.tobytes())
        return digest.hexdigest()

    def _check(self, first: int) -> None:
        if self.cache.n_past != first:
            raise SpeculationError(
                f"a pass begins at position {first}, the cache ends before {self.cache.n_past}: a fault of this kit"
            )
