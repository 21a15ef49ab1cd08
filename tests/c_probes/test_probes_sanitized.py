# SPDX-License-Identifier: Apache-2.0
"""The probes and their unit tests under AddressSanitizer and UndefinedBehaviorSanitizer."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.c_probes.probe_runs import HERE, ROOT, Probes

StandIn = Callable[..., Path]


@pytest.mark.parametrize(
    "fault", ["NONE", "WRONG_ELEMENT", "BAD_DIMS", "CREATE_LEAVES_ZERO", "WORKER_CREATE", "NO_DEVICE"]
)
def test_no_probe_trips_a_sanitizer(sanitized_probes: Probes, stand_in: StandIn, fault: str) -> None:
    small = ("--json", "--seconds", "0.01", "--shape", "5x96x64")
    commands = (
        ("mm_peak", *small, "--type", "1,2,3,4,5,9,10", "--layout", "both", "--ac-layout", "both", "--quant", "both"),
        ("mm_concurrent", *small),
        ("mm_dtypes", "--json"),
    )
    for command in commands:
        run = sanitized_probes.run(*command, library=stand_in(fault))
        assert run.code in (0, 1, 3), run.err
        assert "Sanitizer" not in run.err and "runtime error" not in run.err
        assert run.records[-1]["record"] == "end"


def test_no_probe_trips_a_sanitizer_on_the_mock(sanitized_probes: Probes, mock_library: Path) -> None:
    run = sanitized_probes.run(
        "mm_peak", "--json", "--seconds", "0.01", "--shape", "5x96x64", "--shape", "1x10240x64", "--type", "1,2,10",
        "--quant", "both", library=mock_library,
    )  # fmt: skip
    assert "Sanitizer" not in run.err and "runtime error" not in run.err
    assert run.records[-1]["record"] == "end"


def test_the_unit_tests_pass_on_sanitized_parts(sanitized_probes: Probes) -> None:
    compiler = os.environ.get("CC", "cc")
    runtime = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if "/" not in runtime:
        pytest.skip("this compiler has no shared AddressSanitizer runtime to preload")
    env = {
        **os.environ,
        "LD_PRELOAD": runtime,
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter itself leaks
        "RKNPU_TEST_PARTS": str(sanitized_probes.build / "lib" / "libprobeparts.so"),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "test_probe_parts.py")]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
