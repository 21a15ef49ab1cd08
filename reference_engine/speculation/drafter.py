# SPDX-License-Identifier: Apache-2.0
"""What a strategy of speculative decoding is: something that guesses the next tokens of one sequence.

The order of calls is llama.cpp's (b11434, common/speculative.cpp): ``begin`` once the prompt is in the target's cache,
then in each round ``draft``, a pass of the target over the last token and the draft, ``process`` with what that pass
gave, and ``accept`` with the number of guesses that were right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from reference_engine.errors import EngineError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SpeculationError(EngineError):
    """A strategy that cannot be used as asked. The sentence says what, and what to do."""


@dataclass(frozen=True)
class Round:
    """Where generation stands.

    ``tokens`` are in the target's cache (the prompt and all that was accepted), ``id_last`` is the token after them,
    sampled and not yet decoded, so that its position is ``len(tokens)``. ``n_max``: longest draft that can be used.
    """

    tokens: Sequence[int]
    id_last: int
    n_max: int


@dataclass(frozen=True)
class TargetBatch:
    """One pass of the target: ``tokens`` at positions ``first`` and on.

    ``hidden``: float32 [len(tokens), n_embd], what the target hands to a head that predicts further tokens (after its
    final norm), or None where the target has none.
    """

    tokens: Sequence[int]
    first: int
    hidden: NDArray[np.float32] | None


class Drafter(Protocol):
    """One strategy on one sequence. ``name`` is llama.cpp's name of the type."""

    @property
    def name(self) -> str: ...

    @property
    def wants_hidden(self) -> bool:
        """It reads ``TargetBatch.hidden``, that of the prompt too."""

    def begin(self, tokens: Sequence[int]) -> None:
        """A new request whose prompt (without its last token) is ``tokens``."""

    def draft(self, now: Round) -> list[int]:
        """Guesses for the tokens after ``now.id_last``; empty where there is none."""

    def process(self, batch: TargetBatch) -> None:
        """The target has decoded ``batch`` (the prompt too)."""

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        """``n_accepted`` guesses were right, the target's cache now ends before position ``n_past``.

        ``own``: the draft was this strategy's; another one's otherwise.
        """


class Stateless:
    """The calls that a strategy without state of its own ignores."""

    wants_hidden = False

    def begin(self, tokens: Sequence[int]) -> None:
        del tokens

    def process(self, batch: TargetBatch) -> None:
        del batch

    def accept(self, n_accepted: int, n_past: int, *, own: bool) -> None:
        del n_accepted, n_past, own
