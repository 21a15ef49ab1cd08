# SPDX-License-Identifier: Apache-2.0
"""The C driver: the kernel library built by its Makefile with any compiler and flags, and a program that calls it."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.mock.mock_client import ROOT

KERNELS = ROOT / "reference_engine" / "kernels"
PARTS = ("path", "pool", "dequant", "linear")
"""Beginnings of the source names that the driver needs; the others have drivers of their own."""
SOURCE = Path(__file__).with_name("driver.c")


def build_driver(
    build: Path,
    cc: str = "cc",
    flags: str = "",
    kernels: Path = KERNELS,
    *,
    parts: Sequence[str] = PARTS,
    source: Path = SOURCE,
) -> Path:
    """Library and driver in ``build``; returns the driver, which finds the library beside it."""
    driver = build / "engine" / "driver"
    if driver.exists():
        return driver
    sources = [str(file) for name in parts for file in sorted((kernels / "src").glob(f"{name}*.c"))]
    make = ["make", "-s", "-j2", "-C", str(kernels), f"BUILD={build}", f"CC={cc}", f"CFLAGS_EXTRA={flags}"]
    make.append(f"SOURCES={' '.join(sources)}")
    compile_it = [
        *cc.split(), "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *flags.split(), f"-I{kernels / 'include'}",
        str(source), f"-L{build / 'engine'}", "-lengine_kernels", "-Wl,-rpath,$ORIGIN", "-o", str(driver),
    ]  # fmt: skip
    for command in (make, compile_it):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, " ".join(command) + "\n" + done.stdout + done.stderr
    return driver


def run_driver(
    command: Sequence[str], *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the driver to its end."""
    return subprocess.run(
        [*command, *arguments], env=env, capture_output=True, text=True, timeout=300, check=False
    )  # fmt: skip
