# SPDX-License-Identifier: Apache-2.0
"""The built programs, runs of single probes on the mock, and runs of measurements with a fault switched on."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from probes.library_choice import mock_environment
from probes.measure import measure
from probes.measurements import Setting
from probes.measurements.spec import Spec
from reports.contract import Finding, Measurement, Step
from reports.events import Breadcrumb, Event

CHECKOUT = Path(__file__).resolve().parents[2]
SETTING = Setting(simulated=True, cores=3, rated_tops=6.0)
OFF = "off"


@dataclass
class ProbeRun:
    """One run of a C probe: exit code, JSON records by kind, table text and stderr."""

    code: int
    out: str
    err: str
    records: list[dict[str, Any]] = field(default_factory=list)

    def rows(self, name: str | None = None, **parameters: Any) -> list[dict[str, Any]]:
        return [
            record
            for record in self.records
            if record["record"] == "row"
            and (name is None or record["name"] == name)
            and all(record["parameters"].get(key) == value for key, value in parameters.items())
        ]

    def row(self, name: str | None = None, **parameters: Any) -> dict[str, Any]:
        (found,) = self.rows(name, **parameters)
        return found


@dataclass
class Outcome:
    """What a run of measurements emitted."""

    events: list[Event]

    @property
    def findings(self) -> list[Finding]:
        return [event for event in self.events if isinstance(event, Finding)]

    @property
    def codes(self) -> set[str]:
        return {finding.code for finding in self.findings}

    @property
    def steps(self) -> dict[str, Step]:
        return {event.name: event for event in self.events if isinstance(event, Step)}

    @property
    def crumbs(self) -> list[Breadcrumb]:
        return [event for event in self.events if isinstance(event, Breadcrumb)]

    def rows(self, name: str) -> list[Measurement]:
        return [event for event in self.events if isinstance(event, Measurement) and event.name == name]


@pytest.fixture(scope="session")
def built() -> Path:
    """The build folder, up to date."""
    subprocess.run(["make", "-s", "-C", str(CHECKOUT), "build"], check=True, timeout=600)
    return CHECKOUT / "build"


RunProbe = Callable[..., ProbeRun]
RunMeasure = Callable[..., Outcome]


@pytest.fixture
def probe(built: Path) -> RunProbe:
    """Runs one C probe on the mock; ``timing`` and ``faults`` are the mock's."""

    def run(program: str, *arguments: str, timing: str = OFF, faults: str = "", table: bool = False) -> ProbeRun:
        env = mock_environment({"PATH": os.environ["PATH"], "RKNN_MOCK_TIMING": timing, "RKNN_MOCK_FAULTS": faults})
        argv = [str(built / "bin" / program), *([] if table else ["--json"])]
        argv += ["--library", str(built / "mock/librknnrt.so"), *arguments]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
        records = [] if table else [json.loads(line) for line in done.stdout.splitlines()]
        return ProbeRun(done.returncode, done.stdout, done.stderr, records)

    return run


@pytest.fixture
def run_measure(built: Path) -> RunMeasure:
    """Runs measurements on the mock and collects their events."""

    def run(specs: Sequence[Spec], *, timing: str = OFF, faults: str = "", seed: int = 1, **changes: Any) -> Outcome:
        events: list[Event] = []
        env = mock_environment({"PATH": os.environ["PATH"], "RKNN_MOCK_TIMING": timing, "RKNN_MOCK_FAULTS": faults})
        measure(
            built / "mock/librknnrt.so",
            built / "bin",
            events.append,
            env=env,
            seed=seed,
            specs=specs,
            **{"simulated": True, "setting": SETTING, **changes},
        )
        return Outcome(events)

    return run


@pytest.fixture
def blind(tmp_path: Path) -> Path:
    """A root that shows no load. A fault has to be found on a busy machine too, and there rows are not judged."""
    folder = tmp_path / "blind"
    folder.mkdir()
    return folder


def until_found(code: str, attempt: Callable[[], Outcome], attempts: int = 8) -> Outcome:
    """The first outcome with the finding; the last one when none has it."""
    for _ in range(attempts):
        outcome = attempt()
        if code in outcome.codes:
            break
    return outcome


def bests(
    figures: Callable[[], dict[Any, float]], wanted: dict[Any, float], choose: Callable[[float, float], float]
) -> dict[Any, float]:
    """The best of each figure over up to 8 runs, fewer where every one is wanted (within a tenth) before.

    A busy machine only ever adds to a time and takes from a rate, so ``choose`` is min or max: more runs come closer
    to the figure of an idle machine and never pass it.
    """
    best = figures()
    for _ in range(7):
        if all(abs(best[key] - value) <= value / 10 for key, value in wanted.items()):
            break
        found = figures()
        best = {key: choose(best[key], found[key]) for key in best}
    return best
