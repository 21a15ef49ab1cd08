# SPDX-License-Identifier: Apache-2.0
"""Every trap under every fault, as a table: each fault springs its own trap and no trap names another's fault.

``python -m conformance.traps.matrix --write`` renews the table in README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance.traps import Trap, first_difference, proven_fault, trap_names, write_trap
from conformance.traps.injected import INJECTED, Injected
from conformance.traps.measure import continued
from conformance.traps.trap import UNLESS
from reference_engine.backends import make_backend
from reference_engine.backends.npu_backend import NpuBackend
from reference_engine.errors import EngineError
from reference_engine.model import Model
from reference_engine.speculation import verify
from reference_engine.speculation.engine_sequence import EngineSequence
from reference_engine.speculation.strategies import StrategyOptions, make_stack

README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- matrix -->", "<!-- end of matrix -->"
_DRAFTS = StrategyOptions(size_n=3, size_m=8, n_match=4, n_min=1, n_max=8)

RIGHT, NAMED, WRONG, PROVISO, MISNAMED = "", "**named**", "wrong", "proviso", "MISNAMED"
"""What a trap says under a fault: it is not concerned; it names it; that something is wrong; another fault, unless
another trap springs too; another fault.
"""


@dataclass(frozen=True)
class Outcome:
    """``ids`` of the answer; none where the engine stopped, of which ``stopped`` is the sentence."""

    ids: tuple[int, ...]
    stopped: str = ""


def run(trap: Trap, fault: Injected) -> Outcome:
    """The answer of this kit's engine with a fault in it."""
    backend = make_backend(f"npu:{fault.pipeline}")
    assert isinstance(backend, NpuBackend)
    if fault.backend is not None:
        fault.backend(backend)
    try:
        with Model.load(trap.path, backend) as model:
            if fault.model is not None:
                fault.model(model)
            if fault.sequence is not None:
                return Outcome(_speculated(trap, fault.sequence(model)))
            return Outcome(tuple(continued(model, trap.prompt, len(trap.tokens))[0]))
    except EngineError as error:
        return Outcome((), str(error))


def _speculated(trap: Trap, sequence: EngineSequence) -> tuple[int, ...]:
    stack = make_stack(["ngram-simple"], _DRAFTS, draft=None, mtp=None)
    return tuple(verify.generate(sequence, stack, list(trap.prompt), n_predict=len(trap.tokens)).tokens)


def verdict(trap: Trap, fault: Injected, outcome: Outcome) -> str:
    """One cell."""
    if outcome.stopped:
        return WRONG
    if first_difference(trap, outcome.ids) is None:
        return RIGHT
    said = proven_fault(trap, outcome.ids)
    if said is None:
        return WRONG
    if trap.name in fault.traps:
        return NAMED
    if trap.name in fault.others:
        return PROVISO if UNLESS in said else NAMED
    return MISNAMED


def cells(traps: Iterable[Trap], faults: Mapping[str, Injected] = INJECTED) -> dict[tuple[str, str], str]:
    """(fault, trap) to what the trap says."""
    traps = tuple(traps)
    return {
        (name, trap.name): verdict(trap, fault, run(trap, fault)) for name, fault in faults.items() for trap in traps
    }


def as_table(found: Mapping[tuple[str, str], str], traps: Sequence[str]) -> str:
    """Markdown: a row for each fault."""
    lines = ["| Fault | What goes wrong | " + " | ".join(traps) + " |", "|---|---|" + "---|" * len(traps)]
    for name, fault in INJECTED.items():
        row = " | ".join(found[name, trap] for trap in traps)
        lines.append(f"| `{name}` | {fault.imitates} | {row} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table, or writes it into README.md. Exit code 1 where a fault is not named by its own trap."""
    parser = argparse.ArgumentParser(prog="python -m conformance.traps.matrix", description="Traps under faults.")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        found = cells([write_trap(name, folder) for name in trap_names()])
    table = as_table(found, trap_names())
    if options.write:
        before, _, rest = README.read_text("utf-8").partition(BEGIN)
        README.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", "utf-8")
    print(table)
    caught = all(found[name, trap] == NAMED for name, fault in INJECTED.items() for trap in fault.traps)
    return 0 if caught and MISNAMED not in found.values() else 1


if __name__ == "__main__":
    sys.exit(main())
