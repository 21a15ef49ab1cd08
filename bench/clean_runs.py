# SPDX-License-Identifier: Apache-2.0
"""A hundred clean runs of the small set on the mock: how many raise a finding though nothing is wrong?

``python bench/clean_runs.py [--runs N]``. Exit code 1 when any does.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))  # this is run as a script too

from bench.small_set import FAST, NO_CLIFF  # noqa: E402
from probes.library_choice import mock_environment  # noqa: E402
from probes.measure import measure  # noqa: E402
from probes.measurements import Setting  # noqa: E402
from probes.rows import undisturbed  # noqa: E402
from reports.contract import Finding, Measurement  # noqa: E402
from reports.events import Event  # noqa: E402

SETTING = Setting(simulated=True, cores=3, rated_tops=6.0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    alarms: Counter[str] = Counter()
    rows = wrong = alarmed = judged = 0
    started = time.monotonic()
    for seed in range(1, runs + 1):
        events: list[Event] = []
        measure(
            TOP / "build/mock/librknnrt.so",
            TOP / "build/bin",
            events.append,
            env=mock_environment({"PATH": "/usr/bin:/bin", "RKNN_MOCK_TIMING": NO_CLIFF}),
            seed=seed,
            simulated=True,
            specs=FAST,
            setting=SETTING,
        )
        found = [event for event in events if isinstance(event, Finding)]
        measured = [event for event in events if isinstance(event, Measurement)]
        rows += len(measured)
        wrong += sum(row.verdict.value == "failed" for row in measured)
        alarmed += bool(found)
        judged += sum(undisturbed(row) for row in measured)
        alarms.update(f"{finding.code}: {finding.what}" for finding in found)
    took = time.monotonic() - started
    print(
        f"clean runs of the small set: {runs}, {took:.0f} s, {rows} rows, {judged} of them undisturbed by other "
        f"processes, {wrong} wrong, {alarmed} runs with a finding"
    )
    for text, count in alarms.most_common():
        print(f"  {count} times {text}")
    return 1 if alarms or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
