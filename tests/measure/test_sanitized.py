# SPDX-License-Identifier: Apache-2.0
"""No measuring program trips the address or the undefined-behaviour sanitizer, right results or wrong ones."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from probes.library_choice import mock_environment
from tests.measure.conftest import CHECKOUT

FLAGS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g -O1"
COMMANDS = (
    ("mm_cost", "--quick", "--seconds", "0.01"),
    ("mm_limits", "--most", "1024", "--type", "2"),
    ("mm_masks", "--seconds", "0.02"),
    ("mm_stream", "--shape", "1x512x1024", "--seconds", "0.05"),
    ("mm_memory", "--part", "leaks,ceiling,domains"),
    ("mm_memory", "--part", "contexts"),
    ("mm_grid", "--quick", "--type", "2", "--seconds", "0.005"),
    ("mm_soak", "--seconds", "0.5", "--shape", "64x512x512"),
)


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, built with both sanitizers."""
    build = tmp_path_factory.mktemp("sanitized")
    command = ["make", "-s", "-j2", "-C", str(CHECKOUT / "c_probes/src"), f"BUILD={build}", f"CFLAGS_EXTRA={FLAGS}"]
    subprocess.run(command, check=True, timeout=300)
    return build / "bin"


@pytest.mark.parametrize("faults", ["", "off-by-one"])
def test_no_program_trips_a_sanitizer(sanitized: Path, built: Path, faults: str) -> None:
    env = mock_environment({"PATH": os.environ["PATH"], "RKNN_MOCK_TIMING": "campaign", "RKNN_MOCK_FAULTS": faults})
    env["ASAN_OPTIONS"] = "detect_leaks=1:exitcode=99"
    for program, *arguments in COMMANDS:
        argv = [str(sanitized / program), "--json", "--library", str(built / "mock/librknnrt.so"), *arguments]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == (1 if faults else 0), (program, done.returncode, done.stderr[-2000:])
        assert "Sanitizer" not in done.stderr
        assert "runtime error" not in done.stderr
