# SPDX-License-Identifier: Apache-2.0
"""Lines of a C probe become measurements and findings; a row that is not proven right carries no number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.rows import ProbeOutput, describe, measurement, number, row_findings
from probes.watch import Window
from reports.contract import Checked, Measurement, Severity, Validity

GOOD = Window(Validity(True), {"foreign_cpus": 0.0})


def row(**changes: Any) -> dict[str, Any]:
    record: dict[str, Any] = {
        "record": "row",
        "name": "gemm_rate",
        "parameters": {
            "type": 2,
            "type_name": "int8_int8_int32",
            "M": 512,
            "K": 4096,
            "N": 4096,
            "B_layout": "native",
            "AC_layout": "norm",
            "B_quant": "per_layer",
            "core_mask": 1,
        },
        "unit": "tops",
        "median": 0.69,
        "mad": 0.01,
        "samples": [0.68, 0.69, 0.7],
        "run_us": {"median": 24900.0, "mad": 10.0, "samples": [24900.0]},
        "checked": "exact",
        "verdict": "passed",
        "reason": None,
        "evidence": {},
    }
    parameters = changes.pop("parameters", {})
    record.update(changes)
    record["parameters"] = {**record["parameters"], **parameters}
    return record


def rate(median: float, *, m: int = 512, k: int = 4096, **parameters: Any) -> Measurement:
    return measurement(row(median=median, parameters={"M": m, "K": k, **parameters}), "how", GOOD)


def scaling(*medians: float) -> list[Measurement]:
    return [
        measurement(row(name="core_scaling", median=median, parameters={"contexts": n}), "how", GOOD)
        for n, median in enumerate(medians, start=1)
    ]


def codes(rows: list[Measurement]) -> list[str]:
    return [finding.code for finding in row_findings(rows)]


def test_a_right_row_keeps_its_number_its_samples_and_its_conditions() -> None:
    got = measurement(row(), "how it is measured", GOOD)
    assert (got.median, got.mad, got.samples) == (0.69, 0.01, (0.68, 0.69, 0.7))
    assert got.checked is Checked.EXACT
    assert got.validity.valid
    assert got.method == "how it is measured"
    assert got.evidence["run_us"] == {"median": 24900.0, "mad": 10.0, "samples": [24900.0]}
    assert got.evidence["conditions"] == {"foreign_cpus": 0.0}
    assert row_findings([got]) == []


@pytest.mark.parametrize(
    "verdict", ["failed", "could-not-run", "crashed", "timed-out", "unsupported", "nonsense", None]
)
def test_a_row_that_did_not_pass_never_shows_a_number(verdict: str | None) -> None:
    got = measurement(row(verdict=verdict, reason="why"), "how", GOOD)
    assert got.median is None
    assert got.mad is None
    assert got.samples == ()
    assert not got.validity.valid
    assert got.reason == "why"


def test_a_row_without_conditions_is_not_valid() -> None:
    assert measurement(row(), "how", None).validity == Validity(False, ("conditions unknown",))


@pytest.mark.parametrize(
    ("kind", "code"), [("not-written", "NPU-C030"), ("all-zero", "NPU-C031"), ("wrong", "NPU-C034"), (None, "NPU-C034")]
)
def test_a_wrong_row_is_an_error_that_says_how_it_is_wrong(kind: str | None, code: str) -> None:
    wrong = measurement(row(verdict="failed", reason="row 3, column 5", evidence={"kind": kind}), "how", GOOD)
    (finding,) = row_findings([wrong])
    assert finding.code == code
    assert finding.severity is Severity.ERROR
    assert "int8_int8_int32 M=512 K=4096 N=4096" in finding.what
    assert finding.evidence == "row 3, column 5"


def test_a_type_without_documented_meaning_cannot_be_wrong() -> None:
    odd = measurement(row(verdict="failed", reason="differs", evidence={"semantics": "undocumented"}), "how", GOOD)
    assert codes([odd]) == []


def test_a_type_that_kills_its_process_is_named() -> None:
    died = measurement(
        row(
            name="dtype_support",
            verdict="crashed",
            reason="SIGABRT",
            parameters={"type": 9},
            evidence={"signal": "SIGABRT"},
        ),
        "how",
        GOOD,
    )
    (finding,) = row_findings([died])
    assert finding.code == "NPU-C033"
    assert "type 9" in finding.what
    assert "SIGABRT" in finding.what


def test_cores_that_queue_are_found_and_cores_that_run_side_by_side_are_not() -> None:
    assert codes(scaling(0.66, 0.67, 0.68)) == ["NPU-P021"]
    assert codes(scaling(0.66, 1.26, 1.83)) == []
    assert codes(scaling(0.66)) == []
    assert codes([]) == []


def test_a_failed_worker_voids_its_row_and_is_an_error() -> None:
    void = measurement(
        row(name="core_scaling", verdict="could-not-run", reason="worker 2: create failed", parameters={"contexts": 3}),
        "how",
        GOOD,
    )
    assert void.median is None
    assert codes([void]) == ["NPU-D010"]


def test_a_cliff_in_k_is_found_against_a_row_of_like_m() -> None:
    (finding,) = row_findings([rate(0.69), rate(0.049, k=15360), rate(0.69, m=4096)])
    assert finding.code == "NPU-P022"
    assert "14.1 times slower" in finding.what
    assert "at most 4096" in finding.fix[0]


def test_no_cliff_is_claimed_across_types_layouts_or_unlike_m() -> None:
    assert codes([rate(0.69), rate(0.01, k=15360, m=1)]) == []
    assert codes([rate(0.69), rate(0.01, k=15360, B_layout="norm")]) == []
    assert codes([rate(0.69), rate(0.01, k=15360, type=1)]) == []
    assert codes([rate(0.69), rate(0.36, k=15360)]) == []


def test_the_words_of_a_row_are_the_fields_words() -> None:
    assert describe(rate(1.0)) == "int8_int8_int32 M=512 K=4096 N=4096 core_mask=1, B native, A,C norm, per_layer"


@given(st.text(max_size=200))
@settings(max_examples=200, deadline=None)
def test_no_line_breaks_the_reader(line: str) -> None:
    output = ProbeOutput()
    record = output.feed(line)
    assert record is None or isinstance(record, dict)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=8), children, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(
        st.sampled_from(
            ["name", "parameters", "unit", "median", "mad", "samples", "checked", "verdict", "reason", "evidence"]
        ),
        ANYTHING,
        max_size=10,
    )
)
@settings(max_examples=300, deadline=None)
def test_a_row_of_any_shape_becomes_a_measurement_without_a_false_pass(record: dict[str, Any]) -> None:
    got = measurement(record, "how", GOOD)
    json.dumps([got.as_json(), *(finding.as_json() for finding in row_findings([got, got]))], allow_nan=False)
    assert (got.median is None) or (record.get("verdict") == "passed" and got.median == number(record.get("median")))


def test_the_last_step_survives_for_the_crash_report() -> None:
    output = ProbeOutput()
    for line in (
        '{"record":"header","rows":3,"method":"m"}',
        '{"record":"step","step":"create type=2"}',
        "junk",
        "[1]",
    ):
        output.feed(line)
    assert output.header["rows"] == 3
    assert output.last_step == "create type=2"
    assert output.garbled_lines == 2
    assert not output.ended
