# SPDX-License-Identifier: Apache-2.0
"""The CPU bandwidth probe beside likwid-bench, run in turn on the same CPUs and sizes: `python -m
bench.bandwidth`.

Memory is shared with everything else on the machine, on a rented one with strangers that no counter shows.
So each round runs probe, peer, peer, probe; it counts only when both runs of each agree within ``STEADY``
and no other process used the CPUs. What is left is compared by the ratio of medians, with a bootstrap
interval around it; ``paired`` is the median of the ratios round by round.

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

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))  # this is run as a script too

from probes.conditions import Sampler, foreign_cpus  # noqa: E402

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


def paired(case: Case) -> float:
    """Median of the ratios within each round: what the memory of the machine did between rounds drops out."""
    ours = zip(case.ours[::2], case.ours[1::2], strict=True)
    peer = zip(case.peer[::2], case.peer[1::2], strict=True)
    return median(sum(a) / sum(b) for a, b in zip(ours, peer, strict=True))


def measure(case: Case, ours: Run, peer: Run, options: argparse.Namespace) -> None:
    """Rounds until enough of them count or the time is over."""
    until_s = time.monotonic() + 60 * options.minutes
    with Sampler() as sampler:
        while len(case.ours) < 2 * options.rounds and time.monotonic() < until_s:
            with sampler.row() as quiet:
                time.sleep(0.3)
            if options.realtime or (foreign_cpus(quiet.samples) or 0) <= FOREIGN_CPUS:
                one_round(case, ours, peer, sampler, options.realtime)


def line(case: Case, kernel: str) -> tuple[str, str]:
    """A line of the table and its verdict.

    ``agree``: the ratio is within 3 %. ``differ``: it is not, and neither is any of its interval.
    ``undecided``: the machine was not steady enough to tell.
    """
    counted = len(case.ours) // 2
    head = f"{case.op:<6} {case.threads:>7}  likwid {kernel:<12}"
    tail = f"{counted:>4} rounds, {case.busy} busy and {case.unsteady} unsteady ones left out"
    if counted < FEWEST_ROUNDS:
        return f"{head} {'':>41} undecided    {tail}", "undecided"
    ratio = median(case.ours) / median(case.peer)
    low, high = interval(case)
    clear = low > 1 + AGREE or high < 1 - AGREE
    verdict = "agree" if abs(ratio - 1) <= AGREE else "differ" if clear else "undecided"
    figures = (
        f"{median(case.ours):>7.2f} {median(case.peer):>7.2f} {ratio:>6.3f} {low:.3f}-{high:.3f} {paired(case):>6.3f}"
    )
    return f"{head} {figures} {verdict:<12} {tail}", verdict


def main() -> int:
    """Prints the table. 0 unless a line differs (1) or there is no probe (3); without a peer it says so and
    compares nothing."""
    parser = argparse.ArgumentParser(prog="bench/bandwidth.py", description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, default=TOP / "build/bin/ddr_stream")
    parser.add_argument("--rounds", type=int, default=10, help="rounds that must count, per line")
    parser.add_argument("--minutes", type=float, default=1, help="patience per line")
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
        print("missing: likwid-bench (apt-get install likwid); nothing was compared")
        return 0
    print(f"{'op':<6} {'threads':>7}  {'peer':<19} {'GB/s':>7} {'peer':>7} {'ratio':>6} {'95 %':<11} paired verdict")
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
            text, verdict = line(case, kernel)
            print(text, flush=True)
            verdicts.append(verdict)
    return 1 if "differ" in verdicts else 0


def _cpus(threads: int) -> str:
    return f"0-{threads - 1}" if threads > 1 else "0"


def _close(one: float, two: float) -> bool:
    return abs(one - two) <= STEADY * (one + two) / 2


if __name__ == "__main__":
    sys.exit(main())
