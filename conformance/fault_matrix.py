# SPDX-License-Identifier: Apache-2.0
"""Proof that the suite can fail: each fault of the mock's catalogue, and the checks that catch it by name.

``python -m conformance.fault_matrix`` prints the table, with ``--write`` it goes into ``conformance/FAULTS.md``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from c_probes import mock
from conformance.runner import Outcome, Runner
from conformance.runtime.catalogue import CHECKS
from conformance.target import choose_target
from reports.contract import EXIT_FINDINGS, EXIT_OK, Verdict

TABLE = Path(__file__).with_name("FAULTS.md")
DEADLINE_S = 120.0
BAD = (Verdict.FAILED, Verdict.CRASHED, Verdict.TIMED_OUT)

TIME = ("contexts_speed_up", "k_cliff_time", "layout_time", "spread", "steadiness", "published_speed")
"""The checks of time, which alone see a fault that leaves every number right. The mock waits while they measure."""


@dataclass(frozen=True)
class Trial:
    """How one fault is tried: ``named`` is the pattern that a message must match to count as naming it.

    ``only`` limits the checks, for a fault whose every catch lasts a whole deadline, and for those of speed.
    """

    named: str
    switch: str | None = None
    persona: str = "rk3588"
    only: tuple[str, ...] = ()
    deadline_s: float = DEADLINE_S


TRIALS: Mapping[str, Trial] = {
    "c-untouched": Trial("C was not written"),
    "c-zero": Trial("C is all zero"),
    "stale-a": Trial("stale A"),
    "stale-b": Trial("stale B"),
    "stale-c": Trial("stale C"),
    "wrap": Trial("wraps where it should saturate"),
    "slice0-only": Trial("a slice of the batch is missing"),
    "rows-swapped": Trial("rows 0 and 1 have changed places"),
    "k-tail-dropped": Trial("K tail dropped"),
    "off-by-one": Trial("one element is off by one"),
    "nan": Trial("there are NaN|one element is the most negative value"),
    "nibble-order": Trial("nibble order"),
    "int4-positive-half": Trial("positive int4 weights count half", persona="rk3576"),
    "f16-accumulate": Trial("the accumulator is fp16"),
    "per-channel-zero": Trial("per-channel scales of B.*C is all zero"),
    "per-group-zero": Trial("per-group scales of B.*C is all zero"),
    "small-f16-zero": Trial(r"M=1 K=32 N=16: .*C is all zero"),
    "c-needs-sync": Trial("C needs a sync"),
    "oob-write": Trial("past the end of C"),
    "fd-offset-ignored": Trial("the offset of the fd is ignored"),
    "mask-ignored": Trial("the mask is ignored"),
    "k-refused": Trial(r"rknn_matmul_create.* returned -1 .*K=8192"),
    "n-refused": Trial(r"rknn_matmul_create.* returned -1 .*N=4128"),
    "type-refused": Trial("matmul type 2 is refused"),
    "no-device": Trial("rknn_matmul_create.* returned -1 "),
    "driver-old": Trial("rknn_matmul_create.* returned -10 .*driver"),
    "fail": Trial("rknn_matmul_run returned -1 "),
    "create-logs-error": Trial("returned 0 but logged an error"),
    "create-null-context": Trial("returned 0 but gave no context|it returned 0 but gave no context"),
    "submit-failed": Trial("int status"),
    "bind-no-memory": Trial("rknn_matmul_set_io_mem returned -4 "),
    "int4-norm-b-refused": Trial("int4 B in normal layout is refused|operand B, type 10"),
    "handles-exhausted": Trial("contexts could be (held at once|made after)"),
    "fd-leak": Trial("a leak of descriptors"),
    "memory-leak": Trial("a leak of memory"),
    "contexts-serialised": Trial("the contexts are serialised", only=TIME[:1]),
    "slow-k": Trial("slow above K = 4096", persona="rk3562", only=TIME[1:2]),
    "slow-norm": Trial("normal layout of A and C is slow", only=TIME[2:3]),
    "jitter": Trial("equal runs spread", only=TIME[3:4]),
    "thermal": Trial("speed falls under load", only=TIME[4:5]),
    "clock-low": Trial("the clock of the NPU", only=TIME[5:]),
    "hang": Trial("a call never returned", only=("rebinding",), deadline_s=3.0),
    "crash": Trial("SIGSEGV"),
    "abort": Trial("SIGABRT"),
}


@dataclass
class Row:
    """What came of one fault: checks whose message names it, checks that caught it otherwise, a message as example."""

    fault: str
    named: list[str] = field(default_factory=list)
    caught: list[str] = field(default_factory=list)
    others: list[Outcome] = field(default_factory=list)
    example: str = ""


def try_fault(runner: Runner, fault: str, trial: Trial, checks: Iterable[str] = ()) -> Row:
    """Runs the suite on the mock with this fault. A known refusal that names the fault counts: it is told, as known."""
    row = Row(fault)
    for check in tuple(checks) or trial.only or tuple(CHECKS):
        env = {"RKNN_MOCK_FAULTS": trial.switch or fault, "RKNN_MOCK_PERSONA": trial.persona}
        outcome = runner.run(check, deadline_s=trial.deadline_s, env=env)
        text = " ".join([outcome.reason or "", *outcome.known])
        matches = re.search(trial.named, text, re.DOTALL) is not None
        if outcome.verdict in BAD or (outcome.known and matches):
            (row.named if matches else row.caught).append(check)
            if matches and not row.example:
                row.example = text.strip()
        else:
            row.others.append(outcome)
    return row


def runners() -> dict[str, Runner]:
    """A runner for each persona that the trials need."""
    path = mock.library_path()
    return {
        persona: Runner(choose_target(path, env={"RKNN_MOCK_PERSONA": persona}), level="quick", seed=1)
        for persona in sorted({trial.persona for trial in TRIALS.values()})
    }


def render(rows: Iterable[Row]) -> str:
    """The table as Markdown."""
    faults = {fault.name: fault for fault in mock.faults(mock.library_path())}
    lines = [
        "# Faults of the mock, and the checks that catch them",
        "",
        "Made by `python -m conformance.fault_matrix --write`; a test compares. Each fault was switched on alone",
        "(`RKNN_MOCK_FAULTS=NAME`, its defaults), level quick, seed 1. Listed are the checks whose message says",
        "what is wrong in the words of the fault; more may fail without telling why. Faults that leave every number",
        "right are for the checks of time, and a hang lasts a whole deadline in each check: these are tried alone.",
        "",
        "| Fault | Imitates | Caught and named by |",
        "|---|---|---|",
    ]
    for row in rows:
        trial = TRIALS[row.fault]
        where = "" if trial.persona == "rk3588" else f" (persona {trial.persona})"
        only = "; tried with this alone" if trial.only else ""
        lines.append(f"| `{row.fault}`{where} | {faults[row.fault].imitates} | {_names(row.named)}{only} |")
    return "\n".join(lines) + "\n"


def _names(checks: list[str]) -> str:
    if len(checks) > 10:
        return f"{', '.join(checks[:3])} and {len(checks) - 3} more"
    return ", ".join(checks) or "none"


def main(argv: list[str] | None = None) -> int:
    """Exit code 1 when a fault was caught by no check that names it."""
    parser = argparse.ArgumentParser(
        prog="python -m conformance.fault_matrix", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--write", action="store_true", help="write conformance/FAULTS.md")
    parser.add_argument(
        "--only",
        metavar="FAULT",
        action="append",
        choices=list(TRIALS),
        help="one fault, with the message that names it",
    )
    options = parser.parse_args(argv)
    if options.write and options.only:
        parser.error("--write writes the whole table: it does not go with --only.")
    made = runners()
    try:
        wanted = options.only or list(TRIALS)
        rows = [try_fault(made[TRIALS[name].persona], name, TRIALS[name]) for name in wanted]
    finally:
        for runner in made.values():
            runner.close()
    if options.write:
        TABLE.write_text(render(rows), "utf-8")
    else:
        sys.stdout.write(render(rows))
        sys.stdout.writelines(f"{row.fault}: {row.example or 'NOT NAMED'}\n" for row in rows)
    return EXIT_OK if all(row.named for row in rows) else EXIT_FINDINGS


if __name__ == "__main__":
    sys.exit(main())
