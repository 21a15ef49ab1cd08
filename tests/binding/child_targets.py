# SPDX-License-Identifier: Apache-2.0
"""Functions that the tests call in a child."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time
from typing import Any

from probes.child_steps import step


def double(number: int) -> int:
    step("doubling")
    return 2 * number


def same(value: Any) -> Any:
    return value


def fail(text: str) -> None:
    raise ValueError(text)


def crash_after_steps() -> None:
    step("rknn_matmul_create")
    step("rknn_matmul_run")
    os.kill(os.getpid(), signal.SIGSEGV)


def hang_after_step() -> None:
    step("waiting")
    time.sleep(600)


def crash_at_exit() -> str:
    atexit.register(os.kill, os.getpid(), signal.SIGSEGV)
    return "done"


def leave() -> None:
    os._exit(0)


def call_exit() -> None:
    sys.exit(0)


def print_json_lookalike() -> str:
    print('{"result": "fake"}')
    return "real"


def not_json() -> object:
    return object()
