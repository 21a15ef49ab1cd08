# SPDX-License-Identifier: Apache-2.0
"""The page shows what was measured, in tables that fit a hundred columns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.small_set import COST, GEMM, GRID, MASKS, SCALING
from probes.measurements import cpu, memory, stream
from probes.measurements.spec import Spec
from reports.contract import Measurement
from reports.page_numbers import KNOWN, number_tables, type_words
from reports.terminal import render
from tests.measure.conftest import RunMeasure

TITLES = (
    "Scaling law",
    "GEMM ceiling of one core",
    "Core masks",
    "Cost of calls",
    "NPU weight streaming",
    "Contention between CPU and NPU",
    "Memory and limits of the library",
    "CPU bandwidth of this machine",
    "CPU sets of this machine",
)


def with_arguments(spec: Spec, arguments: tuple[str, ...]) -> Spec:
    """The same measurement with other arguments for its programs."""
    return replace(spec, plan=lambda setting: tuple(replace(p, arguments=arguments) for p in spec.plan(setting)))


def test_every_measurement_has_its_table_and_the_tables_fit(run_measure: RunMeasure) -> None:
    cpus = [
        with_arguments(spec, short)
        for spec, short in (
            (cpu.BANDWIDTH, ("--seconds", "0.01", "--array-kib", "1024")),
            (cpu.RATE, ("--seconds", "0.02")),
        )
    ]
    specs = (GEMM, GRID, SCALING, MASKS, COST, stream.SPEC, memory.LEAKS, *memory.RISKY, *cpus)
    outcome = run_measure(specs, timing="campaign")
    rows = [event.as_json() for event in outcome.events if isinstance(event, Measurement)]
    page = render({"measurements": rows, "simulated": True}, width=100)
    for title in TITLES:
        assert f"\n{title}" in page
    assert [line for line in page.splitlines() if len(line) > 100] == []
    assert page.isascii()


def test_a_row_that_no_table_knows_gets_a_line() -> None:
    row: dict[str, Any] = {"name": "something_new", "median": 3.0, "unit": "x"}
    assert number_tables([row], "", 100) == ["  something_new: 3 x"]


def test_rows_of_odd_shape_break_no_table() -> None:
    for odd in ({}, {"parameters": None}, {"evidence": {"load": 3, "at": 4, "run_us": []}, "median": "x"}):
        number_tables([{"name": name, **odd} for name in KNOWN], "", 100)


def test_types_are_written_short() -> None:
    assert type_words({"parameters": {"type_name": "float16_int4_bfloat16"}}) == "f16*i4>bf16"
    assert type_words({"parameters": {}}) == ""
