# SPDX-License-Identifier: Apache-2.0
"""Trap models on this engine: each right answer, by greedy decoding and with drafts, in pipelines it is right in."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance.bench import CannotOpen, NotServed, Wrong
from conformance.engine.bench import EngineBench
from conformance.engine.runs import Speculator
from conformance.engine.targets import Target
from conformance.traps import Trap, TrapError, diagnose, manifest, trap_names, write_trap
from reference_engine.speculation import verify

STRATEGIES = ("ngram-simple", "ngram-cache")
_QUICK = ("float", "npu:w8a8-per-channel", "npu:w8a8-segment", "npu:w16a16")


def trap_checks() -> Mapping[str, Callable[[EngineBench], str]]:
    """A check for each trap of the manifest, by the names ``trap_...``."""
    rows = {row["name"]: row for row in manifest()["traps"]}
    return {f"trap_{name.replace('-', '_')}": _check_of(name, rows[name]) for name in trap_names() if name in rows}


def _check_of(name: str, row: Mapping[str, Any]) -> Callable[[EngineBench], str]:
    def check(bench: EngineBench) -> str:
        with tempfile.TemporaryDirectory(prefix="rknpu-kit-trap-") as folder:
            try:
                trap = write_trap(name, Path(folder))
            except TrapError as error:
                raise CannotOpen(str(error)) from error
            return run_trap(bench, trap, row["pipelines"])

    check.__name__ = f"trap_{name.replace('-', '_')}"
    check.__doc__ = f"""Trap {name}: {row["fault"]} would change the answer.

    Source: conformance/traps/manifest.json.
    """
    return check


def run_trap(bench: EngineBench, trap: Trap, pipelines: Mapping[str, float]) -> str:
    """Greedy, then with drafts, which are rolled back where they are wrong. ``pipelines``: those it is right in."""
    quick = _QUICK[1:2] if bench.brief else _QUICK
    wanted = [name for name in pipelines if bench.level != "quick" or name in quick]
    done = []
    for pipeline in wanted:
        kind, _, preset = pipeline.partition(":")
        if kind == "float" and bench.engine != "npu":
            continue
        label = pipeline if kind == "float" else f"{bench.engine}:{preset}"
        backend = bench.float_backend() if kind == "float" else bench.backend(preset)
        model = bench.model(Target(trap.name, trap.path), backend)
        it = Speculator(model, STRATEGIES)
        for strategy in (None, *STRATEGIES):
            target, stack = it.make(strategy or STRATEGIES[0])
            run = verify.generate(target, stack if strategy else None, list(trap.prompt), n_predict=len(trap.tokens))
            if tuple(run.tokens[: len(trap.tokens)]) != trap.tokens:
                with_what = f" with {strategy}" if strategy else ""
                raise Wrong(f"{label}{with_what}: {diagnose(trap, run.tokens)}")
        done.append(label)
    if not done:
        raise NotServed(f"trap {trap.name} is right in no pipeline of this engine at level {bench.level}")
    return (
        f"{len(trap.tokens)} tokens, greedy and with {' and '.join(STRATEGIES)}, in {', '.join(done)}; the narrowest "
        f"margin of all pipelines is {min(trap.margins_nats):.1f} nats"
    )
