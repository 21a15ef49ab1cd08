# SPDX-License-Identifier: Apache-2.0
"""The process behind ``python -m conformance.seeds``: many seeds of many checks in one process, one JSON line each.

A fork for each check costs more than most checks do. Here a crash or a hang ends the sweep of its persona, which no
right runtime brings about; what a check leaves behind meets the ones after it.
"""

from __future__ import annotations

import json
import sys

from c_probes import librknnrt
from c_probes.abi import load_ffi
from conformance.run_check import run_check


def main() -> int:
    """Reads one request from stdin: library, soc, level, seeds, checks."""
    asked = json.loads(sys.stdin.read())
    ffi = load_ffi()
    vars(librknnrt)["load_ffi"] = lambda: ffi
    request = {"suite": "runtime", "library": asked["library"], "soc": asked["soc"], "force": False}
    for seed in asked["seeds"]:
        for check in asked["checks"]:
            ended = run_check({**request, "level": asked["level"], "seed": seed, "check": check})
            told = {"check": check, "seed": seed, **ended}
            sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
