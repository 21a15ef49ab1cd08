# SPDX-License-Identifier: Apache-2.0
"""What a strategy drafted and what of it was right, under llama.cpp's names (common/speculative.cpp b11434)."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Statistics:
    """Counts of one strategy.

    ``n_acc_drafts`` counts drafts with at least one right token, ``n_acc_tokens_per_pos[i]`` how often the token at
    position i of a draft was right. ``verify_steps`` are passes of the target over a draft.
    """

    name: str
    n_call_begin: int = 0
    n_call_draft: int = 0
    n_call_accept: int = 0
    n_gen_drafts: int = 0
    n_acc_drafts: int = 0
    n_gen_tokens: int = 0
    n_acc_tokens: int = 0
    n_acc_tokens_per_pos: list[int] = field(default_factory=list)

    def generated(self, n_tokens: int) -> None:
        self.n_gen_drafts += 1
        self.n_gen_tokens += n_tokens

    def accepted(self, n_tokens: int) -> None:
        self.n_call_accept += 1
        self.n_acc_drafts += n_tokens > 0
        self.n_acc_tokens += n_tokens
        per_pos = self.n_acc_tokens_per_pos
        per_pos += [0] * (n_tokens - len(per_pos))
        for i in range(n_tokens):
            per_pos[i] += 1

    @property
    def acceptance(self) -> float | None:
        """Right tokens of all drafted; None where nothing was drafted."""
        return self.n_acc_tokens / self.n_gen_tokens if self.n_gen_tokens else None

    @property
    def mean_length(self) -> float | None:
        """Tokens gained by a pass over a draft: the right ones and the one the pass itself gives."""
        return 1 + self.n_acc_tokens / self.n_call_accept if self.n_call_accept else None

    @property
    def per_position(self) -> list[float]:
        """Share of passes over a draft in which the token at each position was right."""
        return [right / self.n_call_accept for right in self.n_acc_tokens_per_pos] if self.n_call_accept else []
