# SPDX-License-Identifier: Apache-2.0
"""One turn of engine_speed: the engine's samples, disturbed or not, for whoever watches the machine from outside.

``python bench/engine_turn.py MODEL BACKEND THREADS N_PROMPT N_GEN REPETITIONS``; rows as llama-bench -o json on
standard output.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this is run as a script

from reference_engine.backends import make_backend
from reference_engine.benchmark import Workload, document, measure
from reference_engine.foreign_cpu import CpuUse
from reference_engine.model import Model


def clock(run: Callable[[], None]) -> tuple[int, CpuUse]:
    """Nanoseconds of one run; who else used the CPUs is not asked here."""
    started = time.perf_counter_ns()
    run()
    took = time.perf_counter_ns() - started
    return took, CpuUse(took / 1e9, took / 1e9, None)


def main() -> None:
    path, backend, *numbers = sys.argv[1:]
    threads, n_prompt, n_gen, repetitions = map(int, numbers)
    with Model.load(path, make_backend(backend, threads=threads), n_ctx=n_prompt + n_gen, threads=threads) as model:
        rows = [
            document(model, measure(model, work, repetitions=repetitions, patience_s=0.0, clock=clock))
            for work in (Workload(n_prompt, 0), Workload(0, n_gen))
        ]
    print(json.dumps(rows, allow_nan=False))


if __name__ == "__main__":
    main()
