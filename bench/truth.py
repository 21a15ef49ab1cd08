# SPDX-License-Identifier: Apache-2.0
"""Ground truth: what the probes recover from the mock's timing model under five sets of parameters.

``python bench/truth.py [--rounds N] [--sets N]``. The truth is worked out here from the parameters, by the rule the
mock's README states (time = fixed + max(compute, memory), each stretched by the contexts that run together), and not
read back from the mock. Each probe runs several times; rounds in which other processes used the CPUs are set aside as
long as enough are left, and the median of what is left is compared. From a round on a busy machine the best sample is
taken in place of the median (but for scaling): what others take only ever slows a run down. Exit code 1 when a figure
of idle rounds is more than 3 % off; figures from busy rounds are shown and compared, and do not decide.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))  # this is run as a script too

from probes.conditions import Sampler, foreign_cpus  # noqa: E402
from reports.text import table  # noqa: E402

IDLE_CPUS = 0.1
ENOUGH_IDLE = 3
AGREE = 0.03
SIDE = 2048
SCALING_M = 1024


@dataclass(frozen=True)
class Truth:
    """One set of parameters of the model: microseconds, GB/s, TOPS; shares are of one context alone."""

    name: str
    fixed_us: float
    tops: float
    core_gbps: float
    shared_gbps: float
    share2: float
    share3: float
    cliff: int
    factor: float

    @property
    def timing(self) -> str:
        return (
            f"campaign,fixed_us={self.fixed_us},rate_i8_norm={self.tops},rate_i8_native={self.tops},"
            f"bw_core_gbps={self.core_gbps},bw_shared_gbps={self.shared_gbps},share2={self.share2},"
            f"share3={self.share3},k_cliff_i8={self.cliff},k_cliff_factor={self.factor}"
        )

    def run_us(self, m: int, k: int, n: int, contexts: int = 1) -> float:
        """Time of an int8 run with int32 C while ``contexts`` of them run."""
        share = {1: 1.0, 2: self.share2, 3: self.share3}[contexts]
        crowd = max(1.0, contexts * self.core_gbps / self.shared_gbps)
        slow = self.factor if k > self.cliff else 1.0
        compute = 2 * m * k * n / self.tops * 1e-6 * slow / share
        memory = (m * k + k * n + 4 * m * n) / self.core_gbps * 1e-3 * crowd
        return self.fixed_us + max(compute, memory)

    def speedup(self, contexts: int) -> float:
        shape = (SCALING_M, SIDE, SIDE)
        return contexts * self.run_us(*shape) / self.run_us(*shape, contexts)

    def stream_gbps(self, contexts: int) -> float:
        return min(contexts * self.core_gbps, self.shared_gbps)


SETS = (
    Truth("campaign", 32.9, 0.69, 11.1, 26.6, 1.29 / 1.38, 1.83 / 2.07, 8192, 14),
    Truth("slow memory", 120, 1.2, 6, 9, 0.8, 0.6, 4096, 14),
    Truth("no contention", 60, 0.35, 4, 12, 1.0, 1.0, 6144, 5),
    Truth("fast, costly runs", 250, 2.0, 14, 20, 0.95, 0.75, 10240, 8),
    Truth("cores queue", 45, 0.9, 8, 8, 0.55, 0.37, 12288, 6),
)

Rows = list[dict[str, Any]]
Read = Callable[[Rows, bool], "dict[str, float]"]


def _row(rows: Rows, name: str, **wanted: Any) -> dict[str, Any]:
    return next(
        row
        for row in rows
        if row["name"] == name and all(row["parameters"].get(key) == value for key, value in wanted.items())
    )


def _value(row: dict[str, Any], idle: bool, best: Callable[[list[float]], float]) -> float:
    """The row's median; where other processes were busy its best sample, for they only ever slow a run."""
    return float(row["median"] if idle else best(row["samples"]))


def _rate(rows: Rows, idle: bool) -> dict[str, float]:
    return {"rate of one core": _value(_row(rows, "gemm_rate"), idle, max)}


def _fixed(rows: Rows, idle: bool) -> dict[str, float]:
    row = _row(rows, "run_cost", part="fixed")
    return {"fixed cost of a run": _value(row, idle, min), "time in the library": row["evidence"]["library_share"]}


def _scaling(rows: Rows, _idle: bool) -> dict[str, float]:
    # Medians always: a context that others hold up makes room for the rest, so the best sample is no bound here.
    rate = {n: _row(rows, "core_scaling", contexts=n)["median"] for n in (1, 2, 3)}
    return {f"{n} cores, times one": rate[n] / rate[1] for n in (2, 3)}


def _stream(rows: Rows, idle: bool) -> dict[str, float]:
    key = "net_gbps" if idle else "net_best_gbps"
    net = {n: _row(rows, "npu_stream", contexts=n)["evidence"][key] or float("nan") for n in (1, 3)}
    return {"bandwidth of one core": net[1], "bandwidth of three": net[3], "contention of three": 3 * net[1] / net[3]}


def _cliff(rows: Rows, _idle: bool) -> dict[str, float]:
    return {"largest fast K": _row(rows, "shape_limit", dimension="K", limit="fast")["median"]}


PROBES: tuple[tuple[tuple[str, ...], Read], ...] = (
    (("mm_peak", "--type", "2", "--shape", f"{SIDE}x{SIDE}x{SIDE}", "--seconds", "0.3"), _rate),
    (("mm_cost", "--part", "fixed", "--seconds", "0.2"), _fixed),
    (("mm_concurrent", "--shape", f"{SCALING_M}x{SIDE}x{SIDE}", "--seconds", "2"), _scaling),
    (("mm_stream", "--part", "stream", "--seconds", "0.3"), _stream),
    (("mm_limits", "--type", "2", "--quick"), _cliff),
)


def expected(truth: Truth) -> dict[str, tuple[float, str]]:
    """What a perfect probe would say, with its unit."""
    side = 2 * SIDE**3 / truth.run_us(SIDE, SIDE, SIDE) * 1e-6
    return {
        "rate of one core": (side, "TOPS"),
        "fixed cost of a run": (truth.run_us(1, 32, 32), "us"),
        "2 cores, times one": (truth.speedup(2), "x"),
        "3 cores, times one": (truth.speedup(3), "x"),
        "bandwidth of one core": (truth.stream_gbps(1), "GB/s"),
        "bandwidth of three": (truth.stream_gbps(3), "GB/s"),
        "contention of three": (3 * truth.stream_gbps(1) / truth.stream_gbps(3), "x"),
        "largest fast K": (float(truth.cliff), ""),
        "time in the library": (1.0, "share"),
    }


def run_once(truth: Truth, argv: tuple[str, ...], seed: int) -> tuple[Rows, float]:
    """The rows of one run of a probe, and how many CPUs other processes used meanwhile."""
    env = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "RKNN_MOCK_PERSONA": "rk3588",
        "RKNN_MOCK_TIMING": truth.timing,
        "RKNN_MOCK_MEMO": "sync",
    }
    library = TOP / "build/mock/librknnrt.so"
    command = [str(TOP / "build/bin" / argv[0]), "--json", "--library", str(library), "--seed", str(seed), *argv[1:]]
    with Sampler() as sampler, sampler.row() as row:
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode != 0:
        raise SystemExit(f"truth: {argv[0]} ended with {done.returncode}: {done.stderr[-300:]}")
    rows = [json.loads(line) for line in done.stdout.splitlines() if '"record":"row"' in line]
    return rows, foreign_cpus(row.samples) or 0.0


def recover(truth: Truth, rounds: int) -> dict[str, tuple[float, int, int]]:
    """For each quantity: the median over the rounds used, how many were used, and how many of them were idle."""
    found: dict[str, tuple[float, int, int]] = {}
    for argv, read in PROBES:
        many = 1 if argv[0] == "mm_limits" else rounds
        seen = [run_once(truth, argv, seed) for seed in range(1, many + 1)]
        seen.sort(key=lambda each: each[1])
        idle = [each for each in seen if each[1] <= IDLE_CPUS]
        used = idle if len(idle) >= min(ENOUGH_IDLE, many) else seen[: min(ENOUGH_IDLE, many)]
        values = [read(rows, busy <= IDLE_CPUS) for rows, busy in used]
        for key in values[0]:
            found[key] = (median(value[key] for value in values), len(used), len([u for u in used if u in idle]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each probe (default 5)")
    parser.add_argument("--sets", type=int, default=len(SETS), help="only the first so many sets of parameters")
    options = parser.parse_args()
    bad = judged = agree = figures = 0
    print("what the probes recover from the mock's timing model: truth, recovered, error")
    for truth in SETS[: options.sets]:
        found, lines = recover(truth, options.rounds), []
        for key, (want, unit) in expected(truth).items():
            value, used, idle = found[key]
            error = value / want - 1
            off = abs(error) > AGREE if key != "time in the library" else value < 0.995
            word = ("off" if off else "agrees") + (" (busy machine)" if idle < used else "")
            judged += idle == used
            bad += word == "off"
            agree += not off
            figures += 1
            shown = f"{100 * error:+.2f} %" if key != "time in the library" else ">= 0.995 wanted"
            lines.append([key, f"{want:.5g}", f"{value:.5g}", unit, shown, f"{idle} of {used}", word])
        print(f"\n{truth.name}: {truth.timing}")
        columns = ("quantity", "truth", "recovered", "unit", "error", "idle rounds", "")
        print(
            "\n".join(table(lines, columns, ("left", "right", "right", "left", "right", "right", "left"))), flush=True
        )
    print(f"\n{agree} of {figures} figures within {AGREE:.0%}; {judged} from idle rounds, {bad} of those off")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
