# SPDX-License-Identifier: Apache-2.0
"""Built C parts, stand-in libraries with one fault each, and runs of the command line as a user starts it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
STAND_IN = Path(__file__).with_name("stand_in.c")


@dataclass(frozen=True)
class Outcome:
    """What a run of the command line left behind."""

    code: int
    out: str
    err: str
    report: dict[str, Any] | None
    events: list[dict[str, Any]]

    @property
    def codes(self) -> list[str]:
        assert self.report is not None
        return [finding["code"] for finding in self.report["findings"]]

    def step(self, name: str) -> dict[str, Any]:
        assert self.report is not None
        return next(step for step in self.report["steps"] if step["name"] == name)


Probe = Callable[..., Outcome]


@pytest.fixture(scope="session")
def built() -> Path:
    """The build folder, up to date."""
    subprocess.run(["make", "-s", "-C", str(CHECKOUT), "build"], check=True, timeout=600)
    return CHECKOUT / "build"


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Compiles the stand-in library with one fault, by name."""
    folder = tmp_path_factory.mktemp("stand_ins")

    def build(fault: str) -> Path:
        library = folder / f"{fault}.so"
        if not library.exists():
            flags = ["-shared", "-fPIC", "-O1", "-I", str(CHECKOUT / "c_probes" / "include"), f"-D{fault.upper()}"]
            subprocess.run(["cc", *flags, "-o", str(library), str(STAND_IN)], check=True, timeout=120)
        return library

    return build


@pytest.fixture
def probe(built: Path, tmp_path: Path) -> Probe:
    """Runs ``python -m probes`` with a report in a folder of its own."""

    def run(
        *arguments: str, env: dict[str, str] | None = None, output: bool = True, deadline_s: float = 300
    ) -> Outcome:
        report_file = tmp_path / "out" / "report.json"
        extra = ["--output", str(report_file)] if output else []
        lock = {"RKNPU_KIT_LOCK": str(tmp_path / "npu.lock")}
        done = subprocess.run(
            [sys.executable, "-m", "probes", *extra, *arguments],
            cwd=CHECKOUT,
            env={**os.environ, **lock, **(env or {})},
            capture_output=True,
            text=True,
            timeout=deadline_s,
            check=False,
        )
        report = json.loads(report_file.read_text()) if report_file.exists() else None
        log = report_file.with_name("report.events.jsonl")
        events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return Outcome(done.returncode, done.stdout, done.stderr, report, events)

    return run
