# SPDX-License-Identifier: Apache-2.0
"""What speculation saves on the kit's own models: passes for a token, and wall time of this engine against greedy.

``python bench/speculation.py [--full] [--tokens N]``. Every row is checked to be lossless first. Passes are exact;
times are ratios within one run, rounds in which others used the CPUs are discarded and counted. ``--full`` goes through
every strategy, back end and prompt (the device back end on the mock too, over fewer tokens). Exit code 1 where a row is
not lossless, or MTP needs more than 0.45 passes for a token of a copy prompt; 3 where no round was undisturbed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this is run as a script too

from reference_engine.foreign_cpu import CpuWatch
from reference_engine.model_cache import find_model
from reference_engine.tiny import PROMPTS
from tests.lossless.matrix import BACKENDS, N_PREDICT, REAL, TARGETS, plain, speculative, strategies_of

MOST_PASSES = 0.45
ROUNDS = 5


def row(target: str, backend: str, prompt: str, strategy: str, n_predict: int) -> tuple[str, bool, bool]:
    """The line, whether it is lossless, whether it keeps the bar of passes."""
    greedy = plain(target, backend, prompt, n_predict)
    run, stack = speculative(target, backend, prompt, strategy, n_predict)
    lossless = run.sha256 == greedy.sha256
    drafted = sum(s.n_gen_tokens for s in stack.statistics)
    accepted = sum(s.n_acc_tokens for s in stack.statistics)
    rate = f"{accepted / drafted:.3f}" if drafted else "-"
    passes = run.passes_per_token
    held = strategy != "draft-mtp" or prompt != "copy" or passes <= MOST_PASSES
    line = f"{target:12} {backend:22} {prompt:6} {strategy:24} {rate:>6} {passes:7.3f}"
    return f"{line}  {'lossless' if lossless else 'DIFFERS'}{'' if held else '  over the bar'}", lossless, held


def ratio(target: str, backend: str, prompt: str, strategy: str, n_predict: int) -> str | None:
    """Greedy's wall time over speculation's, interleaved; None where no pair of runs was undisturbed."""
    ratios = []
    for _ in range(ROUNDS):
        times = []
        for speculate in (False, True):
            watch, begun = CpuWatch(), time.perf_counter()
            if speculate:
                speculative(target, backend, prompt, strategy, n_predict)
            else:
                plain(target, backend, prompt, n_predict)
            times.append((time.perf_counter() - begun, watch.stop().disturbed))
        if not any(disturbed for _, disturbed in times):
            ratios.append(times[0][0] / times[1][0])
    if not ratios:
        return None
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}, {len(ratios)} of {ROUNDS} rounds)"


def main() -> int:
    parser = argparse.ArgumentParser(description="What speculation saves on the kit's own models.")
    parser.add_argument("--full", action="store_true", help="every strategy, back end and prompt")
    parser.add_argument("--tokens", type=int, default=N_PREDICT)
    values = parser.parse_args()
    backends = (*BACKENDS, "device:w8a8-per-channel") if values.full else BACKENDS[:1]
    print(
        f"{'model':12} {'back end':22} {'prompt':6} {'strategy':24} {'accept':>6} {'passes':>7}"
        f"  ({values.tokens} tokens)"
    )
    sound = True
    targets = TARGETS if not values.full or find_model(REAL) is None else (*TARGETS, REAL)
    for target in targets:
        for backend in backends:
            n_predict = min(values.tokens, 64) if backend.startswith("device") else values.tokens
            for strategy in strategies_of(target):
                for prompt in PROMPTS:
                    line, lossless, held = row(target, backend, prompt, strategy, n_predict)
                    print(line, flush=True)
                    sound &= lossless and held
    print("\nwall time of this engine, greedy over speculation (its targets are tiny: Python's own cost is most of it)")
    undisturbed = False
    for target, strategy in (("tiny-llama", "ngram-mod"), ("tiny-gemma4", "draft-mtp")):
        for prompt in PROMPTS:
            found = ratio(target, "float", prompt, strategy, values.tokens)
            undisturbed |= found is not None
            print(f"{target:12} {prompt:6} {strategy:24} {found or 'disturbed in every round'}", flush=True)
    if not sound:
        return 1
    return 0 if undisturbed else 3


if __name__ == "__main__":
    sys.exit(main())
