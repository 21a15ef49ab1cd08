# SPDX-License-Identifier: Apache-2.0
"""One sequence of tokens on its way through a model: what has been said, its KV cache, and the logits behind it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reference_engine.model import Model

    F32 = NDArray[np.float32]


class Session:
    """``tokens`` are those in the cache; ``logits`` float32 [n_vocab] are those of the last one."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.cache = model.new_cache()
        self.tokens: list[int] = []
        self.logits: F32 = np.zeros(model.n_vocab, dtype=np.float32)

    @property
    def room(self) -> int:
        """Positions that are left in the context."""
        return self.model.n_ctx - len(self.tokens)

    def feed(self, tokens: Sequence[int], progress: Callable[[int, int], None] | None = None) -> F32:
        """Append tokens and return the logits of the last one. ContextFull and NotFinite as Model.forward.

        Interrupted (Ctrl-C) in the middle, the session stands where it stood before.
        """
        self.logits = self.model.forward(tokens, self.cache, progress=progress).logits[-1]
        self.tokens.extend(tokens)
        return self.logits

    def truncate(self, length: int) -> None:
        """Forget the tokens from ``length`` on, as if they had never been. The logits are those of the old end."""
        self.cache.truncate(length)
        del self.tokens[length:]
