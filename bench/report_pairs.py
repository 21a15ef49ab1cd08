# SPDX-License-Identifier: Apache-2.0
"""Pairs of runs on the mock: is ``diff`` silent where nothing changed, and does it find the one change there is?

``python bench/report_pairs.py [--runs N]``. Each run is the small set with another seed, under the conditions of the
moment; every two runs are a pair (15 runs make 105). Rows taken on a busy machine are invalid and not judged, so beside
"no change" stands how many rows were judged, and what comes out when the invalid ones are judged too. Then one
parameter of the mock's timing at a time is set 10 % lower: the rows it governs must be called changed, and no other.
Exit code 1 when more than 5 % of the equal pairs show a change, when a governed row that was judged is missed, or
another is called changed; 3 when not one row could be judged.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))  # this is run as a script too

from bench.small_set import FAST, NO_CLIFF  # noqa: E402
from bench.steady_runs import TIMING, TYPES, quiet_runs, slower  # noqa: E402
from probes.library_choice import mock_environment  # noqa: E402
from probes.measure import measure  # noqa: E402
from probes.measurements import Setting  # noqa: E402
from reports.build import ReportSink  # noqa: E402
from reports.diff import compare  # noqa: E402
from reports.diff.page import row_words  # noqa: E402
from reports.diff.rows import compare_rows  # noqa: E402
from reports.events import Emitter, RunEnded, RunStarted  # noqa: E402

SETTING = Setting(simulated=True, cores=3, rated_tops=6.0)
HEADER: dict[str, Any] = {
    "simulated": True,
    "simulation": {"persona": "rk3588", "timing": "campaign", "note": "The mock answered."},
    "tool": {"name": "rknpu-kit", "version": "0", "git_commit": None},
    "run": {"level": "medium", "seed": 0, "library": None},
}
PATIENCE_S = 120.0
Governs = Callable[[dict[str, Any], str], bool]

PARAMETERS: tuple[tuple[str, float, Governs], ...] = (
    ("fixed_us", 32.9 * 0.9, lambda p, name: name == "run_cost" and p.get("part") == "fixed"),
    ("share3", 1.83 / 2.07 * 0.9, lambda p, name: name == "core_scaling" and p.get("contexts") == 3),
    ("share2", 1.29 / 1.38 * 0.9, lambda p, name: name == "core_scaling" and p.get("contexts") == 2),
)
"""Parameter of the timing set ``campaign``, its value less 10 %, and the rows that it governs alone."""


def run(seed: int, timing: str) -> dict[str, Any]:
    """The report of one run of the small set."""
    sink = ReportSink()
    emitter = Emitter([sink])
    emitter.emit(RunStarted(HEADER))
    measure(
        TOP / "build/mock/librknnrt.so",
        TOP / "build/bin",
        emitter.emit,
        env=mock_environment({"PATH": "/usr/bin:/bin", "RKNN_MOCK_TIMING": timing}),
        seed=seed,
        simulated=True,
        specs=FAST,
        setting=SETTING,
    )
    emitter.emit(RunEnded(0))
    return sink.report()


def all_valid(report: dict[str, Any]) -> dict[str, Any]:
    """The report with every row that has a number marked valid: for a look at the method without its first guard."""
    rows = [
        {**row, "validity": {"valid": True, "reasons": []}} if row["samples"] else row for row in report["measurements"]
    ]
    return {**report, "measurements": rows}


GUARDS: tuple[tuple[str, Callable[[dict[str, Any]], dict[str, Any]]], ...] = (
    ("valid rows", lambda report: report),
    ("all rows", all_valid),
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="equal runs, each compared with each (default 15)")
    parser.add_argument("--rounds", type=int, default=5, help="pairs for each changed parameter (default 5)")
    options = parser.parse_args()
    started = time.monotonic()
    runs = [run(seed, NO_CLIFF) for seed in range(1, options.runs + 1)]
    took = time.monotonic() - started
    share, shown = 1.0, False
    for word, guard in GUARDS:
        guarded = [guard(each) for each in runs]
        differences = [compare(before, after) for before, after in itertools.combinations(guarded, 2)]
        quiet = sum(not any(row.changed for row in difference.rows) for difference in differences)
        judged = sum(row.ratio is not None for difference in differences for row in difference.rows)
        print(
            f"{len(differences)} pairs of {len(runs)} equal runs ({took:.0f} s), {word}: {quiet} say no change, "
            f"{judged} rows judged by their samples"
        )
        said = Counter(
            f"{row.word}: {row_words(row.name, row.parameters)}"
            for difference in differences
            for row in difference.rows
            if row.changed
        )
        for text, count in said.most_common():
            print(f"  {count} times {text}")
        if word == "valid rows":
            share = quiet / max(len(differences), 1)
            shown = judged > 0
    missed = sum(_one_lower(*each, options.rounds) for each in PARAMETERS) + _steady(options.runs)
    if not shown:
        print("Of the small set nothing was shown: other processes kept this machine too busy for a row to be valid.")
        return 1 if missed else 3
    return 1 if share < 0.95 or missed else 0


def _one_lower(name: str, value: float, governs: Governs, rounds: int) -> int:
    """How many rounds missed a governed row that was judged, or called another row changed."""
    wrong = 0
    seeds = range(10_000, 10_000 + 2 * rounds, 2)
    pairs = [(run(seed, NO_CLIFF), run(seed + 1, f"{NO_CLIFF},{name}={value:.6g}")) for seed in seeds]
    for word, guard in GUARDS:
        found = missed = others = unjudged = 0
        for before, after in pairs:
            for row in compare(guard(before), guard(after)).rows:
                if governs(row.parameters, row.name):
                    found += row.changed
                    unjudged += row.word == "not judged"
                    missed += not row.changed and row.word != "not judged"
                else:
                    others += row.changed
        print(
            f"{name} 10 % lower, {word}: found {found}, missed {missed}, not judged {unjudged}, others changed {others}"
        )
        wrong += missed + others if word == "valid rows" else 0
    return wrong


def _steady(count: int) -> int:
    """The same with runs that mostly wait: how many pairs show what they should not, or miss what they should show."""
    runs = list(itertools.islice(quiet_runs(TIMING, 1, PATIENCE_S), count))
    pairs = [compare_rows(before, after) for before, after in itertools.combinations(runs, 2)]
    wrong = sum(any(row.changed for row in rows) for rows in pairs)
    judged = sum(row.ratio is not None for rows in pairs for row in rows)
    print(f"steady runs: {len(pairs) - wrong} of {len(pairs)} pairs say no change, {judged} rows judged")
    for which, type_name in TYPES.items():
        lower = list(itertools.islice(quiet_runs(slower(which), 1000, PATIENCE_S), 3))
        rows = [row for before in runs for after in lower for row in compare_rows(before, after)]
        found = sum(row.word == "slower" for row in rows if row.parameters["type_name"] == type_name)
        others = sum(row.changed for row in rows if row.parameters["type_name"] != type_name)
        tried = len(runs) * len(lower)
        print(
            f"steady runs, rate of {type_name} 10 % lower: found in {found} of {tried} pairs, others changed {others}"
        )
        wrong += tried - found + others
    return wrong


if __name__ == "__main__":
    sys.exit(main())
