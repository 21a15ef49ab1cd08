# SPDX-License-Identifier: Apache-2.0
"""Greedy and speculative output of the same model side by side: the same tokens or not, and what was saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from reference_engine.speculation.explain import Divergence, Seen, Traced, explain, highest
from reference_engine.speculation.verify import Run, generate

if TYPE_CHECKING:
    from reference_engine.speculation.stack import Stack
    from reference_engine.speculation.statistics import Statistics


@dataclass(frozen=True)
class Compared:
    """``seconds`` are of the whole generation, prompt included: greedy, then speculative."""

    strategy: str
    greedy: Run
    speculative: Run
    statistics: tuple[Statistics, ...]
    seconds: tuple[float, float]
    divergence: Divergence | None

    @property
    def lossless(self) -> bool:
        return self.greedy.tokens == self.speculative.tokens

    @property
    def passes_saved(self) -> int:
        return len(self.greedy.steps) - len(self.speculative.steps)

    def verdict(self) -> str:
        n = len(self.greedy.tokens)
        if self.lossless:
            return f"lossless: all {n} tokens of {self.strategy} are those of greedy"
        assert self.divergence is not None
        return f"NOT lossless: {self.divergence.sentence()}"

    def lines(self) -> list[str]:
        """The page: one row for each strategy, then passes, hashes and the verdict."""
        rows = [("strategy", "drafts", "drafted", "accepted", "acceptance", "mean len", "accepted by position")]
        for s in self.statistics:
            acceptance = "-" if s.acceptance is None else f"{s.acceptance:.3f}"
            mean = "-" if s.mean_length is None else f"{s.mean_length:.2f}"
            by_position = " ".join(f"{share:.2f}" for share in s.per_position[:12]) or "-"
            rows.append(
                (s.name, str(s.n_gen_drafts), str(s.n_gen_tokens), str(s.n_acc_tokens), acceptance, mean, by_position)
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        table = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
        greedy, speculative = len(self.greedy.steps), len(self.speculative.steps)
        per_token = self.speculative.passes_per_token
        return [
            *table,
            "",
            f"forward passes: {speculative} for {greedy} ({per_token:.3f} per token), {self.passes_saved} saved",
            f"sha256 of the token ids: {self.greedy.sha256} greedy",
            f"                         {self.speculative.sha256} speculative",
            f"stopped by: {self.speculative.stopped_by}",
            self.verdict(),
            *([] if self.divergence is None else self.divergence.lines()),
        ]

    def document(self) -> dict[str, Any]:
        return {
            "strategy": self.strategy,
            "lossless": self.lossless,
            "verdict": self.verdict(),
            "n_predict": len(self.greedy.tokens),
            "greedy": _run_document(self.greedy, self.seconds[0]),
            "speculative": _run_document(self.speculative, self.seconds[1]),
            "statistics": [_statistics_document(s) for s in self.statistics],
            "divergence": None if self.divergence is None else _divergence_document(self.divergence),
        }


def compare(
    make: Callable[[], tuple[Traced, Stack]],
    prompt: Sequence[int],
    *,
    n_predict: int,
    eog: Collection[int] = (),
) -> Compared:
    """Run both, and look for the cause where they differ. ``make``: a target with an empty cache, fresh strategies."""
    started = time.perf_counter()
    greedy = generate(make()[0], None, prompt, n_predict=n_predict, eog=eog)
    middle = time.perf_counter()
    target, stack = make()
    speculative = generate(target, stack, prompt, n_predict=n_predict, eog=eog)
    ended = time.perf_counter()
    divergence = None
    if greedy.tokens != speculative.tokens:
        divergence = explain(make, prompt, n_predict=n_predict, eog=eog)
    return Compared(
        stack.name, greedy, speculative, tuple(stack.statistics), (middle - started, ended - middle), divergence
    )


def _run_document(run: Run, seconds: float) -> dict[str, Any]:
    return {
        "tokens": run.tokens,
        "sha256": run.sha256,
        "passes": len(run.steps),
        "passes_per_token": run.passes_per_token,
        "stopped_by": run.stopped_by,
        "wall_s": seconds,
    }


def _statistics_document(s: Statistics) -> dict[str, Any]:
    return {
        "name": s.name,
        "n_call_begin": s.n_call_begin,
        "n_call_draft": s.n_call_draft,
        "n_call_accept": s.n_call_accept,
        "n_gen_drafts": s.n_gen_drafts,
        "n_acc_drafts": s.n_acc_drafts,
        "n_gen_tokens": s.n_gen_tokens,
        "n_acc_tokens": s.n_acc_tokens,
        "n_acc_tokens_per_pos": s.n_acc_tokens_per_pos,
        "acceptance": s.acceptance,
        "mean_length": s.mean_length,
    }


def _row(seen: Seen) -> list[list[float]] | None:
    """[token, logit] of the ten highest; numbers that JSON has no way to write are none."""
    if seen.logits is None or not np.isfinite(seen.logits).all():
        return None
    return [[token, logit] for token, logit in highest(seen.logits, 10)]


def _divergence_document(d: Divergence) -> dict[str, Any]:
    return {
        "index": d.index,
        "position": d.position,
        "greedy_token": d.greedy_token,
        "speculative_token": d.speculative_token,
        "cause": d.cause,
        "why": d.why,
        "gap_nats": d.gap_nats,
        "gap_ulp": d.gap_ulp,
        "largest_difference": d.largest_difference,
        "first_step": list(d.first_step) if d.first_step else None,
        "batch_widths": [d.greedy.width, d.speculative.width],
        "rows": [d.greedy.row, d.speculative.row],
        "logits": {"greedy": _row(d.greedy), "speculative": _row(d.speculative)},
    }
