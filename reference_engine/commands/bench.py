# SPDX-License-Identifier: Apache-2.0
"""``bench MODEL``: prefill and decode speed of the engine on this CPU."""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import TYPE_CHECKING

from reference_engine import tiny
from reference_engine.commands.options import (
    add_model_arguments,
    kernels_note,
    load_model,
    open_model_file,
    phase_notes,
    phases,
)
from reference_engine.errors import UsageError
from reports.contract import EXIT_COULD_NOT_RUN, EXIT_OK
from reports.text import inert, table

if TYPE_CHECKING:
    from reference_engine.benchmark import Result
    from reference_engine.model import Model

HELP = "prefill and decode speed of the engine on this CPU"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_model_arguments(parser, default=tiny.DEFAULT)
    parser.add_argument("-p", "--n-prompt", type=numbers, default=[512], metavar="N[,N]", help="prefill (default 512)")
    parser.add_argument("-n", "--n-gen", type=numbers, default=[128], metavar="N[,N]", help="decode (default 128)")
    parser.add_argument(
        "-d", "--n-depth", type=numbers, default=[0], metavar="N[,N]", help="context before (default 0)"
    )
    parser.add_argument("-r", "--repetitions", type=int, default=5, metavar="N", help="of each test (default 5)")
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="how much time of a test may go into repetitions that other processes disturbed (default 60)",
    )
    parser.add_argument("--json", action="store_true", help="a JSON array with the fields of llama-bench -o json")


def numbers(text: str) -> list[int]:
    parts = text.split(",")
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError("whole numbers with commas between them are needed")
    return [int(part) for part in parts]


def run(values: argparse.Namespace) -> int:
    """Exit code 0 measured, 2 usage, 3 where a test had no repetition without other processes in it."""
    from reference_engine import benchmark  # noqa: PLC0415  brings numpy and the kernels
    from reference_engine.progress_bar import progress_bar  # noqa: PLC0415

    if values.repetitions < 1:
        raise UsageError(f"-r is {values.repetitions}; it must be at least 1")
    tests = [
        benchmark.Workload(prompt, gen, depth)
        for depth in values.n_depth
        for prompt, gen in (*((n, 0) for n in values.n_prompt), *((0, n) for n in values.n_gen))
        if prompt or gen
    ]
    if not tests:
        raise UsageError("There is nothing to measure: -p and -n are both 0")
    needed = max(test.n_depth + test.n_prompt + test.n_gen for test in tests)
    with open_model_file(values.model) as file:
        started = time.perf_counter_ns()
        with load_model(values, file, values.ctx or needed) as model:
            load_ns = time.perf_counter_ns() - started
            results = []
            with progress_bar("measuring", sys.stderr) as bar:
                for test in tests:
                    results.append(
                        benchmark.measure(
                            model,
                            test,
                            repetitions=values.repetitions,
                            patience_s=values.patience,
                            progress=bar.show,
                        )
                    )
            if values.json:
                kept = {"load_ns": load_ns, "phases": phases(model.backend)}
                rows = [benchmark.document(model, result) | kept for result in results]
                print(json.dumps(rows, indent=1, allow_nan=False))
            else:
                print(page(model, results, values.repetitions, load_ns))
    return EXIT_OK if all(result.samples_ns for result in results) else EXIT_COULD_NOT_RUN


def page(model: Model, results: list[Result], wanted: int, load_ns: int) -> str:
    from reference_engine.benchmark import ENGINE, cpu_name, model_type  # noqa: PLC0415  brings numpy and the kernels

    kv = f"KV {model.kv.type_k}/{model.kv.type_v}"
    rows = [[result.test.name, _speed(result), _counted(result, wanted)] for result in results]
    lines = [
        f"{inert(model_type(model))}, {model.file.file_bytes / 1e6:.0f} MB, {inert(cpu_name())}",
        f"{model.backend.name}, {model.threads} threads, {kernels_note(model.backend)}, {kv}",
        f"loaded in {load_ns / 1e9:.2f} s",
        *table(rows, ("test", "tokens/s", "repetitions"), ("left", "right", "left")),
        *phase_notes(model.backend),
        f"This is the {ENGINE}.",
    ]
    return "\n".join(lines)


def _speed(result: Result) -> str:
    from statistics import fmean, stdev  # noqa: PLC0415  only where something was measured

    ts = result.samples_ts
    if not ts:
        return "not measured"
    return f"{fmean(ts):.1f} +- {stdev(ts) if len(ts) > 1 else 0:.1f}"


def _counted(result: Result, wanted: int) -> str:
    found = f"{len(result.samples_ns)} of {wanted}"
    if result.discarded:
        found += f", {result.discarded} discarded: other processes used the CPU"
    return found
