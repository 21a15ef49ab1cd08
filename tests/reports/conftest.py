# SPDX-License-Identifier: Apache-2.0
"""Records for the tests of reports: one of each kind, and the report they make."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import reports
from reports.build import ReportSink
from reports.catalogue import make_finding
from reports.contract import Checked, Fact, Measurement, Provenance, Step, Validity, Verdict
from reports.events import Breadcrumb, Emitter, Event, RunEnded, RunStarted

SCHEMA = Path(reports.__file__).parent / "schema" / "capability_report.schema.json"

HEADER: dict[str, Any] = {
    "simulated": True,
    "simulation": {
        "persona": "rk3588",
        "timing": "campaign",
        "note": "The mock answered; no figure is of silicon.",
    },
    "tool": {"name": "rknpu-kit", "version": "0.1.0", "git_commit": None},
    "run": {"level": "medium", "seed": 7, "library": None},
}


def one_of_each() -> list[Event]:
    """A short run: a known and an unknown fact, a good row and a wrong one, a finding, steps that ended two ways."""
    good = Measurement(
        name="gemm_rate",
        parameters={
            "type": 2,
            "type_name": "int8_int8_int32",
            "M": 4,
            "K": 64,
            "N": 32,
            "B_layout": "native",
        },
        unit="tops",
        median=0.69,
        mad=0.01,
        samples=(0.68, 0.69, 0.7),
        checked=Checked.EXACT,
        verdict=Verdict.PASSED,
        validity=Validity(True),
        method="Times runs of one shape.",
    )
    wrong = Measurement(
        name="gemm_rate",
        parameters={"type": 2, "type_name": "int8_int8_int32", "M": 8, "K": 64, "N": 32, "B_layout": "norm"},
        unit="tops",
        median=None,
        mad=None,
        samples=(),
        checked=Checked.EXACT,
        verdict=Verdict.FAILED,
        validity=Validity(False, ("no number",)),
        method="Times runs of one shape.",
        reason="1 of 256 elements is wrong; first at row 3, column 5: got 17, expected 16",
    )
    return [
        RunStarted(HEADER),
        Fact("soc.name", "rk3588", "/proc/device-tree/compatible"),
        Fact("soc.serial", "0123456789abcdef", "/proc/device-tree/serial-number", private=True),
        Fact("npu.load", None, "/sys/kernel/debug/rknpu/load", reason="permission denied", needs_root=True),
        Fact("ddr.width_bits", 64, "table", Provenance.ASSUMED),
        Breadcrumb("gemm", "create type=2 M=4"),
        good,
        wrong,
        make_finding("NPU-C034", "row 3, column 5", row="int8 M=8"),
        Step("gemm", Verdict.FAILED, 1.5, reason="1 wrong row"),
        Step("facts", Verdict.PASSED, 0.2, covered="3 facts"),
        RunEnded(1),
    ]


@pytest.fixture
def events() -> list[Event]:
    return one_of_each()


@pytest.fixture
def report(events: list[Event]) -> dict[str, Any]:
    sink = ReportSink()
    emitter = Emitter([sink])
    for event in events:
        emitter.emit(event)
    return sink.report()


@pytest.fixture(scope="session")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    return loaded
