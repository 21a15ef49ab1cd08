# SPDX-License-Identifier: Apache-2.0
"""The CPU bandwidth probe beside likwid-bench, run in turn on the same CPUs and sizes: `python -m
bench.bandwidth`.

Memory is shared with everything else on the machine, on a rented one with strangers that no counter shows.
So each round runs probe, peer, peer, probe; it counts only when both runs of each agree within ``STEADY``
and no other process used the CPUs. What is left is compared by the ratio of medians, with a bootstrap
interval around it.

Like with like: likwid's ``load`` and ``stream`` kernels of 16-byte width with plain stores, arrays of the
same size, bytes counted as STREAM counts them. ``stream`` is STREAM's triad; likwid's ``triad`` is another
kernel.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from probes.conditions import Sampler, foreign_cpus

TOP = Path(__file__).resolve().parent.parent
STEADY = 0.05
AGREE = 0.03
FOREIGN_CPUS = 0.15
FEWEST_ROUNDS = 5
ARRAYS = {"read": 1, "triad": 3}
KERNELS = {"read": ("load_sse", "load_neon", "load"), "triad": ("stream_sse", "stream_neon", "stream")}
ITERATIONS = {"read": 16, "triad": 6}
OTHER_PEERS = {"stream_c": "STREAM (no Debian package)", "mbw": "mbw (copies only, one thread)"}


Run = Callable[[], float]
"""Runs one of the two programs once and gives its GB/s."""


@dataclass
class Case:
    op: str
    threads: int
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    busy: int = 0
    unsteady: int = 0


@contextmanager
def others_held(case: Case, realtime: bool) -> Iterator[None]:
    """Holds the CPUs that the case does not use with a loop that touches no memory, for at most ten
    seconds."""
    held = range(case.threads, os.cpu_count() or 1) if realtime else ()
    loop = ("sh", "-c", "while :; do :; done")
    holders = [
        subprocess.Popen(["timeout", "10", "chrt", "-f", "10", "taskset", "-c", str(cpu), *loop]) for cpu in held
    ]
    try:
        yield
    finally:
        for holder in holders:
            holder.terminate()
            holder.wait()


def run_ours(binary: Path, case: Case, kib: int) -> float:
    """GB/s of the probe, median of its samples."""
    command = [str(binary), "--json", "--op", case.op, "--threads", str(case.threads), "--cpus", _cpus(case.threads)]
    command += ["--seconds", "0.1", "--array-kib", str(kib)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [json.loads(line) for line in text.splitlines() if '"record":"row"' in line]
    return float(rows[0]["median"])


def run_likwid(kernel: str, case: Case, kib: int) -> float:
    """GB/s of likwid-bench; its size is of all streams and threads together."""
    size = kib * ARRAYS[case.op] * case.threads
    command = ["likwid-bench", "-t", kernel, "-i", str(ITERATIONS[case.op]), "-w", f"N:{size}kB:{case.threads}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = re.search(r"^MByte/s:\s+([0-9.]+)", text, re.MULTILINE)
    if not found:
        raise ValueError(f"likwid-bench gave no MByte/s for {kernel}")
    return float(found[1]) / 1000


def likwid_kernel(op: str) -> str | None:
    """The kernel to compare with on this machine, or None where likwid-bench is not installed."""
    if not shutil.which("likwid-bench"):
        return None
    listed = subprocess.run(["likwid-bench", "-a"], capture_output=True, text=True, check=False).stdout
    names = {line.split(" ")[0] for line in listed.splitlines()}
    return next((kernel for kernel in KERNELS[op] if kernel in names), None)


def one_round(case: Case, ours: Run, peer: Run, sampler: Sampler, realtime: bool) -> bool:
    """Probe, peer, peer, probe. Whether the round counts."""
    with others_held(case, realtime), sampler.row() as row:
        figures = [ours(), peer(), peer(), ours()]
    foreign = foreign_cpus(row.samples)
    if foreign is None or (foreign > FOREIGN_CPUS and not realtime):
        case.busy += 1
        return False
    if not (_close(figures[0], figures[3]) and _close(figures[1], figures[2])):
        case.unsteady += 1
        return False
    case.ours += [figures[0], figures[3]]
    case.peer += figures[1:3]
    return True


def interval(case: Case, draws: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the ratio of medians."""
    dice = random.Random(1)
    ratios = sorted(
        median(dice.choices(case.ours, k=len(case.ours))) / median(dice.choices(case.peer, k=len(case.peer)))
        for _ in range(draws)
    )
    return ratios[int(0.025 * draws)], ratios[int(0.975 * draws)]


def measure(case: Case, ours: Run, peer: Run, options: argparse.Namespace) -> None:
    """Rounds until enough of them count or the time is over."""
    until_s = time.monotonic() + 60 * options.minutes
    with Sampler() as sampler:
        while len(case.ours) < 2 * options.rounds and time.monotonic() < until_s:
            with sampler.row() as quiet:
                time.sleep(0.3)
            if options.realtime or (foreign_cpus(quiet.samples) or 0) <= FOREIGN_CPUS:
                one_round(case, ours, peer, sampler, options.realtime)


def line(case: Case, kernel: str) -> tuple[str, bool]:
    """A line of the table and whether the two agree."""
    counted = len(case.ours) // 2
    head = f"{case.op:<6} {case.threads:>7}  likwid {kernel:<12}"
    tail = f"{counted:>4} rounds, {case.busy} busy and {case.unsteady} unsteady ones left out"
    if counted < FEWEST_ROUNDS:
        return f"{head} {'':>32} undecided    {tail}", False
    ratio = median(case.ours) / median(case.peer)
    low, high = interval(case)
    agree = abs(ratio - 1) <= AGREE
    figures = f"{median(case.ours):>7.2f} {median(case.peer):>7.2f} {ratio:>6.3f} {low:.3f}-{high:.3f}"
    return f"{head} {figures} {'agree' if agree else 'differ':<12} {tail}", agree


def main() -> int:
    """Prints the table. 0: all agree within 3 %; 1: not all; 3: there is no peer or no probe to run."""
    parser = argparse.ArgumentParser(prog="python -m bench.bandwidth", description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=TOP / "build/bin/ddr_stream")
    parser.add_argument("--rounds", type=int, default=15, help="rounds that must count, per line")
    parser.add_argument("--minutes", type=float, default=3, help="patience per line")
    parser.add_argument("--array-kib", type=int, default=131072)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--realtime", action="store_true", help="run with real-time priority (root)")
    options = parser.parse_args()
    if options.realtime:
        # inherited by the programs; round robin, for the threads of likwid-bench wait for each other spinning
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(20))
    for program, what in OTHER_PEERS.items():
        if not shutil.which(program):
            print(f"missing: {what}")
    if not options.binary.is_file():
        print(f"no probe at {options.binary}: run make build first", file=sys.stderr)
        return 3
    if likwid_kernel("read") is None:
        print("missing: likwid-bench, the peer to compare with (apt-get install likwid)", file=sys.stderr)
        return 3
    print(f"{'op':<6} {'threads':>7}  {'peer':<19} {'GB/s':>7} {'peer':>7} {'ratio':>6} 95 %        verdict")
    verdicts = []
    for threads in options.threads:
        for op in ARRAYS:
            case, kernel = Case(op, threads), likwid_kernel(op)
            if kernel is None:
                print(f"{op:<6} {threads:>7}  likwid has no kernel for it on this machine")
                continue
            ours = partial(run_ours, options.binary, case, options.array_kib)
            peer = partial(run_likwid, kernel, case, options.array_kib)
            measure(case, ours, peer, options)
            text, agree = line(case, kernel)
            print(text, flush=True)
            verdicts.append(agree)
    return 0 if verdicts and all(verdicts) else 1


def _cpus(threads: int) -> str:
    return f"0-{threads - 1}" if threads > 1 else "0"


def _close(one: float, two: float) -> bool:
    return abs(one - two) <= STEADY * (one + two) / 2


if __name__ == "__main__":
    sys.exit(main())
