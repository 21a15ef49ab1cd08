# SPDX-License-Identifier: Apache-2.0
"""Proof that the engine's suite can fail: each fault of the engine, and the checks that catch it by name.

``python -m conformance.engine.fault_table`` prints it; with ``--write`` it goes into ``conformance/engine/FAULTS.md``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from conformance.engine.faults import FAULTS, VARIABLE
from conformance.engine.suite import CHECKS
from conformance.runner import Outcome, Runner
from conformance.subjects import EngineSubject
from reports.contract import EXIT_FINDINGS, EXIT_OK, Verdict

PARTS: Mapping[str, tuple[str, ...]] = {
    "quantiser": ("quantiser_", "matmul_segments", "matmul_oracle"),
    "product": (
        "matmul_oracle",
        "matmul_segments",
        "matmul_float",
        "batch_invariance",
        "end_to_end",
        "trap_k_segment",
        "trap_segment_scale",
        "trap_core_slices",
        "trap_stale_activation",
        "trap_batch_row",
        "trap_w4a4",
    ),
    "model": (
        "graph_",
        "batch_invariance",
        "kv_rollback",
        "end_to_end",
        "losslessness",
        "cache_cheat",
        "trap_kv_rollback",
        "trap_swa_window",
        "trap_rope_base",
        "trap_tied_head",
    ),
}
"""The checks, by their names' beginnings, that a fault of each part of the engine is tried on."""

_SWEEP = "quantiser_rim"
"""Slow with a fault in numpy, so tried only where it is what finds the fault."""

TABLE = Path(__file__).with_name("FAULTS.md")
DEADLINE_S = 300.0
BAD = (Verdict.FAILED, Verdict.CRASHED, Verdict.TIMED_OUT)
_SHOWN = 8


@dataclass
class Row:
    """What came of one fault: checks whose message names it, checks that failed otherwise, a message as example."""

    fault: str
    named: list[str] = field(default_factory=list)
    caught: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)
    broken: list[Outcome] = field(default_factory=list)
    example: str = ""


def engine_runner(level: str = "quick", seed: int = 1) -> Runner:
    """Runs checks on the emulation with the kit's models."""
    return Runner(EngineSubject("npu", None, None), level=level, seed=seed)


def try_fault(runner: Runner, fault: str, checks: Iterable[str] = ()) -> Row:
    """Runs checks (default: those of its part) with one fault in the engine. A check that broke caught nothing."""
    row = Row(fault)
    for check in checks or checks_for(fault):
        outcome = runner.run(check, deadline_s=DEADLINE_S, env={VARIABLE: fault})
        if outcome.verdict in BAD:
            names_it = re.search(FAULTS[fault].named, outcome.reason or "", re.DOTALL) is not None
            (row.named if names_it else row.caught).append(check)
            if names_it and not row.example:
                row.example = outcome.reason or ""
        elif outcome.verdict is Verdict.COULD_NOT_RUN:
            row.broken.append(outcome)
        else:
            row.passed.append(check)
    return row


def checks_for(fault: str) -> list[str]:
    """Those of the fault's part of the engine."""
    found = [name for name in CHECKS if name.startswith(PARTS[FAULTS[fault].part])]
    return [name for name in found if name != _SWEEP or FAULTS[fault].at_rim]


def rows(faults: Sequence[str] = ()) -> list[Row]:
    """The whole matrix: every fault (or those named) against the checks of its part."""
    with engine_runner() as runner:
        return [try_fault(runner, fault) for fault in faults or FAULTS]


def render(found: Iterable[Row]) -> str:
    """The table as Markdown."""
    lines = [
        "# Faults of the engine, and the checks that catch them",
        "",
        "Made by `python -m conformance.engine.fault_table --write`; a test tries each fault again on the first check",
        f"that names it. Each fault was switched on alone (`{VARIABLE}=NAME`), `--engine npu`, quick, seed 1, and",
        "tried on the checks of its part of the engine (quantiser, products, model). Named: the message says what is",
        "wrong in the words of the fault. Also failed: without telling which it is.",
        "",
        "| Fault | Imitates | Caught and named by | Also failed |",
        "|---|---|---|---|",
    ]
    for row in found:
        cells = FAULTS[row.fault].imitates, _names(row.named) or "none", _names(row.caught) or "none"
        lines.append(f"| `{row.fault}` | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _names(checks: list[str]) -> str:
    if len(checks) > _SHOWN:
        return f"{', '.join(checks[: _SHOWN - 2])} and {len(checks) - _SHOWN + 2} more"
    return ", ".join(checks)


def named_by(table: Path = TABLE) -> dict[str, str]:
    """Fault to the first check that names it, as the written table has it; not the sweep where another does."""
    found = {}
    for line in table.read_text("utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 4:
            names = re.split(", | and ", cells[2])
            found[cells[0].strip("`")] = next((name for name in names if name != _SWEEP), names[0])
    return found


def main(argv: list[str] | None = None) -> int:
    """Exit code 1 when a fault was caught by no check that names it."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.engine.fault_table", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--write", action="store_true", help="write conformance/engine/FAULTS.md")
    parser.add_argument(
        "--only", metavar="FAULT", action="append", choices=list(FAULTS), help="one fault, with details"
    )
    options = parser.parse_args(argv)
    if options.write and options.only:
        parser.error("--write needs every fault; leave --only out")
    found = rows(options.only or ())
    if options.write:
        TABLE.write_text(render(found), "utf-8")
    else:
        sys.stdout.write(render(found))
    for row in found:
        sys.stdout.writelines(f"{row.fault}: {o.check} did not run: {o.reason}\n" for o in row.broken)
        if options.only or not row.named:
            sys.stdout.write(f"{row.fault}: {row.example or 'NOT NAMED'}\n")
    return EXIT_OK if all(row.named for row in found) else EXIT_FINDINGS


if __name__ == "__main__":
    sys.exit(main())
