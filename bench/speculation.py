# SPDX-License-Identifier: Apache-2.0
"""What speculation saves on the kit's own models: passes for a token, and wall time of this engine against greedy.

``python bench/speculation.py [--tokens N] [--rounds N]``. Every row is checked to be lossless first. Passes are exact.
Times are the median of ratios within one run, greedy and speculation by turns; where others used the CPUs in every
round, the ratio is that of the disturbed rounds and is marked. Rows of a target that costs more than its drafter: the
tiny gemma4 with its feed-forward layers widened by zeros (the same text and the same drafts), and SmolLM2 where
``make model`` has brought it. (The whole matrix of losslessness: ``python -m tests.lossless.manifest``.) Exit code 1
where a row is not lossless, or MTP needs more than 0.45 passes for a token of a copy prompt, or saves no time where the
target is the cost; 3 where no round was undisturbed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this is run as a script too

from bench.wide_ffn import widen
from reference_engine.foreign_cpu import CpuWatch
from reference_engine.model_cache import find_model
from reference_engine.tiny import PROMPTS, tiny_model
from tests.lossless.matrix import (
    BACKENDS,
    N_PREDICT,
    REAL,
    TARGETS,
    Loaded,
    load,
    loaded,
    plain,
    speculate,
    strategies_of,
)

MOST_PASSES = 0.45
ROUNDS = 5
WIDER = 64
"""A widened tiny gemma4 has 38 million weights in its feed-forward layers."""

SHORT = 128
"""Tokens of a target that is not tiny."""


def row(target: str, backend: str, prompt: str, strategy: str, n_predict: int) -> tuple[str, bool]:
    """The line, and whether it is lossless and keeps the bar of passes."""
    greedy = plain(target, backend, prompt, n_predict)
    run, stack = speculate(loaded(target, backend), prompt, strategy, n_predict)
    lossless = run.sha256 == greedy.sha256
    drafted = sum(s.n_gen_tokens for s in stack.statistics)
    accepted = sum(s.n_acc_tokens for s in stack.statistics)
    rate = f"{accepted / drafted:.3f}" if drafted else "-"
    passes = run.passes_per_token
    held = strategy != "draft-mtp" or prompt != "copy" or passes <= MOST_PASSES
    line = f"{target:18} {backend:22} {prompt:6} {strategy:24} {rate:>6} {passes:7.3f}"
    return f"{line}  {'lossless' if lossless else 'DIFFERS'}{'' if held else '  over the bar'}", lossless and held


class Timed:
    """Greedy's wall time over speculation's, round by round: ``ratios`` of undisturbed rounds and ``disturbed``."""

    def __init__(self, it: Loaded, prompt: str, strategy: str, n_predict: int, rounds: int) -> None:
        self.ratios: list[float] = []
        self.disturbed: list[float] = []
        greedy = it.greedy(prompt, n_predict)
        self.lossless = speculate(it, prompt, strategy, n_predict)[0].sha256 == greedy.sha256
        for _ in range(rounds):
            times = [
                _timed(lambda: it.greedy(prompt, n_predict)),
                _timed(lambda: speculate(it, prompt, strategy, n_predict)),
            ]
            kept = self.disturbed if any(disturbed for _, disturbed in times) else self.ratios
            kept.append(times[0][0] / times[1][0])

    @property
    def median(self) -> float:
        return statistics.median(self.ratios or self.disturbed)

    def __str__(self) -> str:
        ratios = self.ratios or self.disturbed
        word = f"{len(ratios)} rounds" if self.ratios else f"{len(ratios)} rounds, others used the CPUs in each"
        text = f"{self.median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {word})"
        return text if self.lossless else f"{text}  DIFFERS"


def _timed(run: Callable[[], object]) -> tuple[float, bool]:
    watch, begun = CpuWatch(), time.perf_counter()
    run()
    return time.perf_counter() - begun, watch.stop().disturbed


def wide_gemma4(folder: Path, backend: str) -> Loaded:
    path = folder / "wide.gguf"
    widen(tiny_model("tiny-gemma4"), path, WIDER)
    return load("tiny-gemma4", backend, path)


def main() -> int:
    parser = argparse.ArgumentParser(description="What speculation saves on the kit's own models.")
    parser.add_argument("--tokens", type=int, default=N_PREDICT)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    values = parser.parse_args()
    head = f"{'model':18} {'back end':22} {'prompt':6} {'strategy':24}"
    print(f"{head} {'accept':>6} {'passes':>7}  ({values.tokens} tokens)")
    sound = True
    for target in TARGETS:
        for strategy in strategies_of(target):
            for prompt in PROMPTS:
                line, good = row(target, BACKENDS[0], prompt, strategy, values.tokens)
                print(line, flush=True)
                sound &= good
    print("\nwall time of this engine, greedy over speculation: above 1 is a gain")
    print(head)
    undisturbed = False
    short = min(SHORT, values.tokens)
    with tempfile.TemporaryDirectory() as folder:
        for name, target, backend, strategy, prompt, n_predict in timed_rows(values.tokens, short):
            it = wide_gemma4(Path(folder), backend) if name == "wide tiny-gemma4" else loaded(target, backend)
            found = Timed(it, prompt, strategy, n_predict, values.rounds)
            print(f"{name:18} {backend:22} {prompt:6} {strategy:24} {found}", flush=True)
            undisturbed |= bool(found.ratios)
            sound &= found.lossless and (name in TARGETS or prompt != "copy" or found.median > 1)
    if not sound:
        return 1
    return 0 if undisturbed else 3


def timed_rows(n_predict: int, short: int) -> list[tuple[str, str, str, str, str, int]]:
    """Name, target, back end, strategy, prompt, tokens: tiny targets, then those that cost more than their drafters."""
    rows = [
        (target, target, backend, "ngram-mod" if target == "tiny-llama" else "draft-mtp", prompt, n_predict)
        for target in TARGETS
        for backend in BACKENDS[:2]
        for prompt in PROMPTS
    ]
    rows += [
        ("wide tiny-gemma4", "tiny-gemma4", backend, "draft-mtp", prompt, short)
        for backend in BACKENDS[:2]
        for prompt in PROMPTS
    ]
    if find_model(REAL) is not None:
        rows += [(REAL, REAL, backend, "ngram-mod", "copy", short) for backend in BACKENDS[:2]]
    return rows


if __name__ == "__main__":
    sys.exit(main())
