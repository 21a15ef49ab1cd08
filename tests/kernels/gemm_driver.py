# SPDX-License-Identifier: Apache-2.0
"""The C test driver of the int8 kernels: how it is built and run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.gemm.kernels import SOURCES, compile_c

SOURCE = Path(__file__).parent / "driver.c"


def build_driver(out: Path, cc: Sequence[str] = ("gcc",), flags: Sequence[str] = (), sources: Path = SOURCES) -> Path:
    """Compile the driver with all kernels found in `sources` into `out`, once."""
    return out if out.exists() else compile_c(out, [SOURCE, *sorted(sources.glob("*.c"))], cc, flags)


def run_driver(
    command: Sequence[str], *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the driver to its end; `env` adds to an environment without RKNN_MOCK_KERNEL."""
    clean = {key: value for key, value in os.environ.items() if key != "RKNN_MOCK_KERNEL"}
    return subprocess.run(
        [*command, *arguments], env={**clean, **(env or {})}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
