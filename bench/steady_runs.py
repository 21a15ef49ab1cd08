# SPDX-License-Identifier: Apache-2.0
"""Runs of one C probe on the mock that a busy machine hardly disturbs: nearly all of their time is waiting.

All times of the mock are 4000 times longer, so that a run waits some 30 ms, beside which what the machine adds is
small; bandwidth and calls cost so little that the rate of a type alone decides. A run counts when the samples of each
of its rows agree: all but the lowest within 1 %.
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP))  # the module that imports this may be run as a script

from probes.library_choice import mock_environment  # noqa: E402
from probes.rows import ProbeOutput, measurement  # noqa: E402

RATES = {"f16": 0.6, "i8": 0.5}
TIMING = (
    "campaign,scale=4000,fixed_us=0.1,bw_core_gbps=1000,bw_shared_gbps=3000,create_us=1,destroy_us=1,bind_native_us=1,"
    "bind_norm_us=1,sync_us=0.01,sync_gbps=1000,rate_f16_norm=0.6,rate_i8_norm=0.5"
)
COMMAND = ("--shape", "32x256x256", "--types", "1,2", "--layout", "native", "--seconds", "0.3")
TYPES = {"f16": "float16_float16_float32", "i8": "int8_int8_int32"}

Rows = list[dict[str, Any]]


def run(seed: int, timing: str) -> Rows:
    library = TOP / "build/mock/librknnrt.so"
    done = subprocess.run(
        [TOP / "build/bin/mm_peak", "--json", "--library", library, "--seed", str(seed), *COMMAND],
        env=mock_environment({"PATH": "/usr/bin:/bin", "RKNN_MOCK_TIMING": timing}),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    output = ProbeOutput()
    for line in done.stdout.splitlines():
        output.feed(line)
    return [measurement(row, "m", None).as_json() for row in output.rows]


def agree(samples: list[float]) -> bool:
    most = sorted(samples)[1:]  # what disturbs a rate makes it lower
    return len(most) >= 5 and most[-1] < 1.01 * most[0]


def quiet_runs(timing: str, first_seed: int, patience_s: float) -> Iterator[Rows]:
    """Runs whose samples agree, as long as there is time. Their rows are marked valid."""
    deadline = time.monotonic() + patience_s
    for seed in itertools.count(first_seed):
        rows = run(seed, timing)
        assert [row["verdict"] for row in rows] == ["passed", "passed"]
        if all(agree(row["samples"]) for row in rows):
            yield [{**row, "validity": {"valid": True, "reasons": []}} for row in rows]
        if time.monotonic() > deadline:
            return


def slower(which: str) -> str:
    """The timing with the rate of ``which`` ("f16" or "i8") 10 % lower."""
    return f"{TIMING},rate_{which}_norm={0.9 * RATES[which]:.6g}"
