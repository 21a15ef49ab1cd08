# SPDX-License-Identifier: Apache-2.0
"""The options of ``pytest conformance``, read into one record and checked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from conformance.bench import LEVELS

LATER = ("engine", "server")
"""Targets that the options already name and this version does not judge."""

DEADLINE_FACTOR = {"quick": 1.0, "medium": 4.0, "long": 30.0}


class UnusableOption(ValueError):
    """An option that cannot be served; the message says why."""


@dataclass(frozen=True)
class Options:
    """``deadline_s`` holds for each check; None takes the check's own, times the factor of the level."""

    library: Path | None
    level: str
    seed: int
    report: Path | None
    deadline_s: float | None

    def deadline_for(self, own_s: float) -> float:
        """Seconds that a check may take."""
        return self.deadline_s if self.deadline_s is not None else own_s * DEADLINE_FACTOR[self.level]


def add_options(parser: pytest.Parser) -> None:
    """Declares the options."""
    group = parser.getgroup("conformance", "rknpu-kit conformance")
    group.addoption("--library", metavar="PATH", help="librknnrt to judge (default: the board's own, else the mock)")
    group.addoption("--engine", metavar="WHICH", help="npu or device: not in this version")
    group.addoption("--server", metavar="URL", help="a llama-server compatible service: not in this version")
    group.addoption("--level", default="quick", choices=LEVELS, help="how much is tried (default: quick)")
    group.addoption("--seed", type=int, default=1, help="seed of all operands (default: 1)")
    group.addoption("--deadline", type=float, metavar="SECONDS", help="deadline of each check (default: by level)")
    group.addoption("--report", metavar="FILE", help="write the section 'conformance' into this capability report")


def read_options(config: pytest.Config) -> Options:
    """The record. Raises :class:`UnusableOption` for what cannot be done."""
    for name in LATER:
        if config.getoption(name):
            raise UnusableOption(f"--{name} is not in this version: only a librknnrt can be judged (--library PATH).")
    library, report = config.getoption("library"), config.getoption("report")
    if library is not None and not Path(library).is_file():
        raise UnusableOption(f"--library {library}: there is no such file.")
    seed, deadline = config.getoption("seed"), config.getoption("deadline")
    if seed < 0:
        raise UnusableOption(f"--seed {seed}: it has to be 0 or more.")
    if deadline is not None and deadline <= 0:
        raise UnusableOption(f"--deadline {deadline:g}: it has to be more than 0 seconds.")
    return Options(
        None if library is None else Path(library),
        config.getoption("level"),
        seed,
        None if report is None else Path(report),
        deadline,
    )
