# SPDX-License-Identifier: Apache-2.0
"""No false alarm: the suite on the mock without a fault, over seeds and personas.

``python -m conformance.seeds --seeds 100`` runs every check on every persona with each seed and prints what failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from c_probes import mock
from conformance.runner import Outcome, Runner
from conformance.runtime.catalogue import CHECKS
from conformance.target import choose_target
from reports.contract import EXIT_FINDINGS, EXIT_OK, Verdict

FINE = (Verdict.PASSED, Verdict.UNSUPPORTED)
DEADLINE_S = 120.0


def outcomes(library: Path, persona: str, seeds: Iterable[int], checks: Sequence[str]) -> list[Outcome]:
    """Every check with every seed on the mock at level quick, no fault switched on."""
    env = {"RKNN_MOCK_PERSONA": persona, "RKNN_MOCK_FAULTS": ""}
    found = []
    with Runner(choose_target(library, env=env), level="quick", seed=0, env=env) as runner:
        for seed in seeds:
            runner.seed = seed
            found += [runner.run(check, deadline_s=DEADLINE_S) for check in checks]
    return found


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
    options = parser.parse_args(argv)
    bad = 0
    for persona in options.persona or names:
        found = outcomes(library, persona, range(options.seeds), options.check or list(CHECKS))
        wrong = [outcome for outcome in found if outcome.verdict not in FINE]
        bad += len(wrong)
        passed = sum(outcome.verdict is Verdict.PASSED for outcome in found)
        sys.stdout.write(f"{persona}: {len(found)} checks, {passed} passed, {len(wrong)} failed\n")
        sys.stdout.writelines(f"  {outcome.check}: {outcome.reason}\n" for outcome in wrong)
    return EXIT_FINDINGS if bad else EXIT_OK


if __name__ == "__main__":
    sys.exit(main())
