# SPDX-License-Identifier: Apache-2.0
"""No false alarm: the suite on the mock without a fault, over seeds and personas.

``python -m conformance.seeds --seeds 100`` runs every check on every persona with each seed and prints what failed.
Checks that draw nothing are the same with every seed, and run with the first one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from c_probes import mock
from conformance.bench import LEVELS
from conformance.runner import ROOT, Outcome, Runner
from conformance.runtime.catalogue import CHECKS
from conformance.target import choose_target
from reports.contract import EXIT_FINDINGS, EXIT_OK, Verdict

FINE = (Verdict.PASSED, Verdict.UNSUPPORTED)
DEADLINE_S = 120.0
CHUNK = 10
"""Seeds in one process: the mock remembers what was destroyed, so a process slows down."""

SEEDLESS = frozenset(
    {
        "type_table",
        "impossible_requests",
        "error_codes",
        "int16_overflow",
        "int4_normal_b",
        "descriptors",
        "address_space",
    }
)
"""Checks that draw no operands."""


def outcomes(library: Path, persona: str, seeds: Iterable[int], checks: Sequence[str]) -> list[Outcome]:
    """Every check with every seed on the mock at level quick, no fault switched on, each in a child of its own."""
    env = {"RKNN_MOCK_PERSONA": persona, "RKNN_MOCK_FAULTS": ""}
    found = []
    with Runner(choose_target(library, env=env), level="quick", seed=0, env=env) as runner:
        for seed in seeds:
            runner.seed = seed
            found += [runner.run(check, deadline_s=DEADLINE_S) for check in checks]
    return found


def sweep(
    library: Path, persona: str, seeds: Iterable[int], checks: Sequence[str], *, level: str = "quick", faults: str = ""
) -> Iterator[dict[str, Any]]:
    """The same with few processes, which is several times as fast: check, seed, verdict, reason.

    A process that ends early gives one more answer, with verdict crashed.
    """
    wanted = list(seeds)
    asked = {"library": str(library), "soc": persona, "level": level}
    drawn = [check for check in checks if check not in SEEDLESS]
    for start in range(0, len(wanted), CHUNK):
        chunk = wanted[start : start + CHUNK]
        if start == 0 and len(drawn) < len(checks):
            yield from _sweep({**asked, "seeds": chunk[:1], "checks": list(checks)}, faults)
            chunk = chunk[1:]
        yield from _sweep({**asked, "seeds": chunk, "checks": drawn}, faults)


def _sweep(asked: dict[str, Any], faults: str) -> Iterator[dict[str, Any]]:
    due = len(asked["seeds"]) * len(asked["checks"])
    if not due:
        return
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    env |= {"RKNN_MOCK_PERSONA": asked["soc"], "RKNN_MOCK_FAULTS": faults}
    command = [sys.executable, "-m", "conformance.seed_sweep"]
    pipe = subprocess.PIPE
    answers = 0
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env, cwd=ROOT) as process:
        if process.stdin is None or process.stdout is None:
            raise OSError("the process that sweeps has no pipes")
        process.stdin.write(json.dumps(asked))
        process.stdin.close()
        for line in process.stdout:
            answers += 1
            yield json.loads(line)
    if process.returncode or answers < due:
        reason = f"the sweep ended with code {process.returncode} after {answers} of {due} checks"
        yield {"check": "all", "seed": None, "verdict": Verdict.CRASHED.value, "reason": reason}


def main(argv: list[str] | None = None) -> int:
    """Exit code 1 when anything failed."""
    library = mock.library_path()
    names = [persona.name for persona in mock.personas(library)]
    parser = argparse.ArgumentParser(
        prog="python -m conformance.seeds", description="The suite over seeds and personas."
    )
    parser.add_argument("--seeds", type=int, default=100, metavar="N", help="seeds 0 to N-1 (default: 100)")
    parser.add_argument("--persona", action="append", choices=names, help="one persona (default: all)")
    parser.add_argument("--check", action="append", choices=list(CHECKS), help="one check (default: all)")
    parser.add_argument("--level", default="quick", choices=LEVELS, help="level of the checks (default: quick)")
    options = parser.parse_args(argv)
    bad = 0
    for persona in options.persona or names:
        start = time.monotonic()
        counts: Counter[str] = Counter()
        checks = options.check or list(CHECKS)
        for found in sweep(library, persona, range(options.seeds), checks, level=options.level):
            counts[found["verdict"]] += 1
            if Verdict(found["verdict"]) not in FINE:
                bad += 1
                sys.stdout.write(f"  seed {found['seed']}, {found['check']}: {found['reason']}\n")
        told = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
        seconds = time.monotonic() - start
        sys.stdout.write(f"{persona}: {sum(counts.values())} checks, {told}; {seconds:.0f} s\n")
        sys.stdout.flush()
    return EXIT_FINDINGS if bad else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
