# SPDX-License-Identifier: Apache-2.0
"""The C driver: the kernel library built by its Makefile with any compiler and flags, and a program that calls it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
    changed: bool = False,
) -> Path:
    """Library and driver in ``build``; returns the driver, which finds the library beside it.

    What is there already stays, unless the kernels have ``changed`` since: then what depends on the change is built.
    """
    driver = build / "engine" / "driver"
    if driver.exists() and not changed:
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


def copy_kernels(folder: Path) -> Path:
    """A copy of the kernels that may be changed, in a tree in which their Makefile works."""
    copy = folder / "reference_engine" / "kernels"
    shutil.copytree(KERNELS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "c_probes").symlink_to(ROOT / "c_probes")
    return copy


@contextmanager
def fault_in(kernels: Path, file: str, old: str, new: str) -> Iterator[None]:
    """While it lasts, ``old``, which a source of the kernels has once, reads ``new``."""
    source = kernels / "src" / file
    text = source.read_text(encoding="utf-8")
    assert text.count(old) == 1
    source.write_text(text.replace(old, new), encoding="utf-8")
    try:
        yield
    finally:
        source.write_text(text, encoding="utf-8")


def run_driver(
    command: Sequence[str], *arguments: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the driver to its end."""
    return subprocess.run(
        [*command, *arguments], env=env, capture_output=True, text=True, timeout=300, check=False
    )  # fmt: skip
