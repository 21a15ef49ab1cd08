# SPDX-License-Identifier: Apache-2.0
"""The suite ``server`` against a real llama-server: plain beside each n-gram strategy, F32 beside quantised, the traps.

``python bench/server_real.py --llama-server BIN --model QUANTISED.gguf --f32 F32.gguf [--only WORDS] [--out FOLDER]``
starts the services on free ports of this machine, one pair at a time, runs the checks on each pair, prints every
outcome, and writes ``real.json`` and ``REAL.md`` into FOLDER. Exit code 1 where an outcome is not the expected one.

One row is there to fail: ``--spec-synth-len`` makes llama-server accept drafts without looking at the model.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # this is run as a script too

from conformance.runner import Outcome, Runner
from conformance.server.suite import CHECKS
from conformance.subjects import ServerSubject
from conformance.traps import trap_names, write_trap
from reference_engine.foreign_cpu import CpuWatch
from reports.contract import Verdict

READY_S, DEADLINE_S = 120.0, 900.0
COMMON = ("--host", "127.0.0.1", "-c", "2048", "-np", "1", "--metrics", "--no-ui")
F32_CACHE = ("-ctk", "f32", "-ctv", "f32", "-fa", "off")

STRATEGIES: Mapping[str, tuple[str, ...]] = {
    "ngram-simple": (
        "--spec-type",
        "ngram-simple",
        "--spec-ngram-simple-size-n",
        "4",
        "--spec-ngram-simple-size-m",
        "16",
    ),
    "ngram-map-k": ("--spec-type", "ngram-map-k", "--spec-ngram-map-k-size-n", "4", "--spec-ngram-map-k-size-m", "16"),
    "ngram-mod": (
        *("--spec-type", "ngram-mod", "--spec-ngram-mod-n-match", "8", "--spec-ngram-mod-n-min", "4"),
        *("--spec-ngram-mod-n-max", "16"),
    ),
    "ngram-cache": ("--spec-type", "ngram-cache"),
}
SYNTHETIC = ("--spec-synth-len", "3")

ALWAYS = ("greedy_is_repeatable", "greedy_takes_the_most_likely")
SPECULATION, REPEATED, TRAP = (
    "speculation_changes_nothing",
    "repeated_prompt_is_not_faster",
    "trap_model_gives_its_tokens",
)


@dataclass(frozen=True)
class Case:
    """One service: its arguments beyond COMMON, the checks, and how they are to end."""

    name: str
    file: Path
    arguments: tuple[str, ...]
    checks: tuple[str, ...]
    kv: str | None = None
    expected: tuple[Verdict, ...] = (Verdict.PASSED,)


@dataclass(frozen=True)
class Row:
    """One outcome. ``disturbed``: others used the CPUs meanwhile."""

    case: Case
    outcome: Outcome
    disturbed: bool

    @property
    def as_expected(self) -> bool:
        return self.outcome.verdict in self.case.expected


class Bench:
    """Starts services and judges them."""

    def __init__(self, program: Path, threads: int, level: str, seed: int) -> None:
        self.program, self.threads, self.level, self.seed = program, threads, level, seed
        self.rows: list[Row] = []

    @contextlib.contextmanager
    def serving(self, model: Path, arguments: Sequence[str]) -> Iterator[str]:
        """A service that has loaded its model, until the block ends."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [
            str(self.program),
            "-m",
            str(model),
            "--port",
            str(port),
            "-t",
            str(self.threads),
            *COMMON,
            *arguments,
        ]
        env = {**os.environ, "LD_LIBRARY_PATH": str(self.program.parent)}
        with tempfile.TemporaryFile() as said:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=env)
            try:
                self._wait(process, f"http://127.0.0.1:{port}", said)
                yield f"http://127.0.0.1:{port}"
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()

    def _wait(self, process: subprocess.Popen[bytes], url: str, said: Any) -> None:
        end = time.monotonic() + READY_S
        while time.monotonic() < end:
            if process.poll() is not None:
                said.seek(0)
                tail = said.read().decode("utf-8", "replace").splitlines()[-3:]
                raise SystemExit(f"{self.program} ended with code {process.returncode}: {' | '.join(tail)}")
            with contextlib.suppress(OSError, urllib.error.URLError):
                urllib.request.urlopen(f"{url}/health", timeout=2).close()
                return
            time.sleep(0.2)
        raise SystemExit(f"{self.program} is not ready after {READY_S:g} s")

    def judge(self, case: Case, url: str, off: str | None = None) -> None:
        """Runs the checks and prints how each ended."""
        with Runner(ServerSubject(url, off, None, kv=case.kv), level=self.level, seed=self.seed) as runner:
            for check in case.checks:
                watch = CpuWatch()
                outcome = runner.run(CHECKS[check].name, deadline_s=DEADLINE_S)
                self.rows.append(Row(case, outcome, watch.stop().disturbed))
                sys.stdout.write(f"{case.name:28} {check:30} {outcome.verdict.value:13} {_sentence(outcome)}\n")
                sys.stdout.flush()


def run(bench: Bench, title: str, model: Path, f32: Path | None, only: str) -> None:
    """Every configuration whose name holds ``only``."""
    _pairs(bench, Case(title, model, (), ()), only)
    if f32 is not None:
        _pairs(bench, Case("F32 weights and KV", f32, F32_CACHE, (), "f32"), only)
    with tempfile.TemporaryDirectory() as folder:
        for trap in trap_names():
            for kind, extra in (("plain", ()), ("ngram-simple", STRATEGIES["ngram-simple"])):
                case = Case(f"trap {trap}, {kind}", Path(folder), extra, (TRAP,))
                if only in case.name:
                    file = write_trap(trap, folder).path
                    with bench.serving(file, extra) as url:
                        bench.judge(replace(case, file=file), url)


def _pairs(bench: Bench, base: Case, only: str) -> None:
    """One model: plain alone, then beside each strategy, then beside a service that is wrong."""
    maybe = (Verdict.PASSED, Verdict.UNSUPPORTED)  # no draft at all, or times of a busy machine, are no verdict
    cases = [replace(base, name=f"{base.name}, plain", checks=(*ALWAYS, REPEATED), expected=maybe)]
    for name, extra in STRATEGIES.items():
        case = replace(base, name=f"{base.name}, {name}", arguments=(*base.arguments, *extra), expected=maybe)
        cases.append(replace(case, checks=(SPECULATION, *ALWAYS, *((REPEATED,) if name == "ngram-mod" else ()))))
    wrong = (*base.arguments, *STRATEGIES["ngram-mod"], *SYNTHETIC)
    case = replace(base, name=f"{base.name}, synthetic", arguments=wrong, expected=(Verdict.FAILED,))
    cases.append(replace(case, checks=(SPECULATION,)))
    cases = [case for case in cases if only in case.name]
    if not cases:
        return
    with bench.serving(base.file, base.arguments) as off:
        for case in cases:
            if case.arguments == base.arguments:
                bench.judge(case, off)
                continue
            with bench.serving(base.file, case.arguments) as on:
                bench.judge(case, on, off)


def _sentence(outcome: Outcome) -> str:
    return outcome.covered or (outcome.reason or "").splitlines()[0]


def version_of(program: Path) -> str:
    """What the program says of itself."""
    env = {**os.environ, "LD_LIBRARY_PATH": str(program.parent)}
    told = subprocess.run([program, "--version"], capture_output=True, text=True, env=env, check=False, timeout=60)
    lines = [line for line in (told.stdout + told.stderr).splitlines() if line.startswith("version")]
    return lines[0] if lines else "unknown version"


def write(bench: Bench, folder: Path, version: str) -> None:
    """``real.json`` and ``REAL.md``; rows of an earlier run with ``--only`` stay where this one has none."""
    options = f"--level {bench.level} --seed {bench.seed}"
    how = f"python bench/server_real.py --llama-server BIN --model FILE --f32 FILE {options}"
    rows = [
        {
            "configuration": row.case.name,
            "model": row.case.file.name,
            "arguments": ["-t", str(bench.threads), *COMMON, *row.case.arguments],
            "check": row.outcome.check,
            "verdict": row.outcome.verdict.value,
            "told": _sentence(row.outcome),
            "seconds": round(row.outcome.seconds, 1),
            "disturbed": row.disturbed,
            "as_expected": row.as_expected,
        }
        for row in bench.rows
    ]
    with contextlib.suppress(FileNotFoundError):
        fresh = {(row["configuration"], row["check"]) for row in rows}
        before = json.loads((folder / "real.json").read_text("utf-8"))["rows"]
        rows = sorted(
            [row for row in before if (row["configuration"], row["check"]) not in fresh] + rows,
            key=lambda row: str(row["configuration"]),
        )
    record = {"format": "rknpu-kit server record", "server": f"llama-server, {version}", "made_with": how, "rows": rows}
    (folder / "real.json").write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    head = (
        f"llama-server, {version}, by `{how}` (with `--title` and `--only` for parts). Each row is one check of one "
        f"service; all were started with `{' '.join(COMMON)} -t {bench.threads}`, and each with its own arguments, "
        "which are in `real.json`. Other processes used the CPUs while a row marked * ran: its ratios of speeds say "
        "little. The rows called synthetic are there to fail: `--spec-synth-len` accepts drafts without looking at the "
        "model."
    )
    lines = [
        "# The suite `server` against llama-server",
        "",
        *textwrap.wrap(head, 120, break_on_hyphens=False),
        "",
        "| configuration | model | check | verdict | what it says |",
        "|---|---|---|---|---|",
        *(
            f"| {row['configuration']}{' *' if row['disturbed'] else ''} | {row['model']} | {row['check']} "
            f"| {row['verdict']} | {str(row['told']).replace('|', '/')} |"
            for row in rows
        ),
    ]
    (folder / "REAL.md").write_text("\n".join(lines) + "\n", "utf-8")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--llama-server", type=Path, required=True, metavar="BIN", help="the program")
    parser.add_argument("--model", type=Path, required=True, metavar="GGUF", help="a quantised model")
    parser.add_argument("--title", default="quantised", metavar="WORDS", help="what the rows of --model are called")
    parser.add_argument("--f32", type=Path, metavar="GGUF", help="the same in F32 (llama-quantize IN OUT F32)")
    parser.add_argument("--only", default="", metavar="WORDS", help="configurations whose name holds these words")
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="write real.json and REAL.md there")
    parser.add_argument("--threads", type=int, default=1, metavar="N", help="of each service (default: 1)")
    parser.add_argument("--level", default="quick", choices=("quick", "medium", "long"))
    parser.add_argument("--seed", type=int, default=1)
    values = parser.parse_args(argv)
    bench = Bench(values.llama_server.resolve(), values.threads, values.level, values.seed)
    run(bench, values.title, values.model, values.f32, values.only)
    if values.out is not None:
        write(bench, values.out, version_of(bench.program))
    wrong = [row for row in bench.rows if not row.as_expected]
    sys.stdout.write(f"{len(bench.rows)} outcomes, {len(wrong)} not as expected\n")
    return 1 if wrong or not bench.rows else 0


if __name__ == "__main__":
    sys.exit(main())
