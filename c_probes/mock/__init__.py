# SPDX-License-Identifier: Apache-2.0
"""The mock librknnrt: where it lies, what it can be asked to imitate, and replay of a saved capability report.

The tables (personas, faults, timing sets) live in the library alone; this module reads them through its introspection
functions, so there is no second copy to go stale.
"""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from pathlib import Path

VERSIONS = ("1.5.2", "1.6.0", "2.0.0-beta0", "2.1.0", "2.3.2")
DEFAULT_VERSION = "2.3.2"


class MockNotBuilt(Exception):
    """The library is not there yet; the message says how to build it."""


@dataclass(frozen=True)
class Fault:
    """One row of the fault catalogue. ``parameters`` is ``name=default`` joined by colons, as the switch takes it."""

    name: str
    parameters: str
    imitates: str


@dataclass(frozen=True)
class Persona:
    """One system on chip as this runtime version serves it. ``types`` are the accepted matmul type codes."""

    name: str
    title: str
    cores: int
    types: tuple[int, ...]
    timing: str
    doubt: str


@dataclass(frozen=True)
class TimingSet:
    """One set of timing parameters, by name of the parameter as text."""

    name: str
    what: str
    source: str
    parameters: dict[str, str]


def build_folder() -> Path:
    """``build`` beside the packages, or what RKNPU_BUILD names."""
    named = os.environ.get("RKNPU_BUILD")
    return Path(named) if named else Path(__file__).resolve().parents[2] / "build"


def library_path(version: str = DEFAULT_VERSION, build: Path | None = None) -> Path:
    """Path of the built mock of one runtime version.

    Raises MockNotBuilt when it does not exist, ValueError for a version that the mock does not know.
    """
    if version not in VERSIONS:
        raise ValueError(f"unknown runtime version {version!r}; the mock knows {', '.join(VERSIONS)}")
    folder = (build or build_folder()) / "mock"
    path = folder / "librknnrt.so" if version == DEFAULT_VERSION else folder / version / "librknnrt.so"
    if not path.is_file():
        raise MockNotBuilt(f"{path} does not exist; build it with: make mock")
    return path


def table(what: str, library: Path) -> list[list[str]]:
    """One table of the library as rows of cells. ``what``: ``faults``, ``personas`` or ``timing``."""
    loaded = ctypes.CDLL(str(library))
    loaded.rknn_mock_list.restype = ctypes.c_size_t
    loaded.rknn_mock_list.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
    size = loaded.rknn_mock_list(what.encode(), None, 0)
    text = ctypes.create_string_buffer(size + 1)
    loaded.rknn_mock_list(what.encode(), text, size + 1)
    return [line.split("\t") for line in text.value.decode().splitlines()]


def faults(library: Path) -> list[Fault]:
    """The fault catalogue."""
    return [Fault(*row) for row in table("faults", library)]


def personas(library: Path) -> list[Persona]:
    """The personas, with the types that this library's runtime version accepts."""
    return [
        Persona(
            name,
            title,
            int(cores),
            tuple(int(code) for code in types.split(",") if code != "none"),
            timing,
            doubt,
        )
        for name, title, cores, types, timing, doubt in table("personas", library)
    ]


def timing_sets(library: Path) -> list[TimingSet]:
    """The timing sets that ship with the mock."""
    return [
        TimingSet(name, what, source, dict(cell.split("=", 1) for cell in cells))
        for name, what, source, *cells in table("timing", library)
    ]
