# SPDX-License-Identifier: Apache-2.0
"""draft-mtp: heads that predict further tokens from the target's hidden state (multi-token prediction).

Facts: llama.cpp b11434, common/speculative.cpp. Three kinds of heads, told apart by what they remember:

- shared memory (gemma4-assistant): reads the target's keys and values and keeps none; all tokens of a draft stand at
  one position, that of the last token;
- a single head (the nextn block of qwen35): keys and values of its own, caught up with every batch of the target;
- chained heads (step35): one head for each token of a draft, at most as many tokens as heads; each head goes over the
  draft from its beginning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from reference_engine.speculation.draft_model import top_probability
from reference_engine.speculation.drafter import Round, SpeculationError, TargetBatch
from reference_engine.speculation.verify import chosen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    F32 = NDArray[np.float32]


class MtpHead(Protocol):
    """What computes. ``n_embd`` is the width of the hidden state that it takes and gives."""

    n_embd: int
    shared_memory: bool
    n_heads: int

    def decode(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> tuple[F32, F32]:
        """``tokens`` at positions ``first`` and on, each with the hidden state [M, n_embd] of the position before it.

        Logits [n_vocab] of the last one and hidden states [M, n_embd]. A head with memory of its own forgets what it
        has from ``first`` on and appends.
        """

    def fill(self, tokens: Sequence[int], hidden: F32, first: int, *, head: int = 0) -> None:
        """The same for its memory alone, without a result."""

    def truncate(self, n_past: int) -> None:
        """Forget own keys and values from position ``n_past`` on; nothing to do where memory is shared."""


class Mtp:
    """Names and defaults are llama.cpp's (``n_max`` 3, ``n_min`` 0, ``p_min`` 0).

    ``compat``: the hidden state before the first token of a request is that of the last request's end, as in llama.cpp
    (zeros otherwise, and for the very first request).
    """

    name = "draft-mtp"
    wants_hidden = True

    def __init__(
        self, head: MtpHead, n_max: int = 3, n_min: int = 0, p_min: float = 0.0, *, compat: bool = False
    ) -> None:
        self.head, self.n_min, self.p_min, self.compat = head, n_min, p_min, compat
        self.chained = head.n_heads > 1 and not head.shared_memory
        self.n_max = min(n_max, head.n_heads) if self.chained else n_max
        self._pending: F32 = np.zeros((1, head.n_embd), dtype=np.float32)
        self._rows: F32 = self._pending

    def begin(self, tokens: Sequence[int]) -> None:
        """Nothing: the prompt has been seen by ``process``. Where it is empty, the state before it counts."""
        if not tokens:
            self._start_anew()

    def process(self, batch: TargetBatch) -> None:
        if batch.hidden is None or batch.hidden.shape != (len(batch.tokens), self.head.n_embd):
            shape = None if batch.hidden is None else list(batch.hidden.shape)
            raise SpeculationError(
                f"the drafter needs the target's hidden state [{len(batch.tokens)}, {self.head.n_embd}] and got {shape}"
            )
        if batch.first == 0:
            self._start_anew()
        if not self.head.shared_memory:
            before = np.concatenate((self._pending, batch.hidden[:-1]))
            for head in range(self.head.n_heads if self.chained else 1):
                self.head.fill(batch.tokens, before, batch.first, head=head)
        self._rows = np.array(batch.hidden)
        self._pending = self._rows[-1:]

    def draft(self, now: Round) -> list[int]:
        draft: list[int] = []
        start = len(now.tokens)
        if self.head.shared_memory and start == 0:
            return []  # no keys and values of the target to attend to
        tokens, states = [now.id_last], self._pending
        while len(draft) < min(self.n_max, now.n_max):
            i = len(draft)
            if self.chained:
                logits, hidden = self.head.decode(tokens, states, start, head=i)
            else:
                at = start if self.head.shared_memory else start + i
                logits, hidden = self.head.decode(tokens[-1:], states[-1:], at)
            if self.p_min > 0 and top_probability(logits) < self.p_min:
                break
            draft.append(chosen(logits))
            tokens.append(draft[-1])
            states = np.concatenate((states, hidden[-1:]))
        return draft if len(draft) >= self.n_min else []

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        """The hidden state of the last accepted token, whoever drafted it, is what the next draft begins with."""
        del own
        at = min(n_accepted, len(self._rows) - 1)
        self._pending = self._rows[at : at + 1]
        self.head.truncate(n_past)

    def _start_anew(self) -> None:
        if not self.compat:
            self._pending = np.zeros((1, self.head.n_embd), dtype=np.float32)
        self._rows = self._pending
