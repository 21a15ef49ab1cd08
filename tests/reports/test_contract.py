# SPDX-License-Identifier: Apache-2.0
"""Records refuse to say less than the contract asks for."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.catalogue import CATALOGUE, make_finding
from reports.contract import Fact, Finding, Severity, Step, Verdict, by_cause, finite

JSON_LIKE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=3), children, max_size=3),
    max_leaves=8,
)


def test_a_null_fact_without_a_reason_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Fact("soc.name", None, "/proc")


def test_a_pass_without_its_coverage_sentence_is_refused() -> None:
    with pytest.raises(ValueError, match="what it covered"):
        Step("x", Verdict.PASSED, 0.0)


def test_a_step_that_did_not_pass_needs_its_reason() -> None:
    with pytest.raises(ValueError, match="needs a reason"):
        Step("x", Verdict.CRASHED, 0.0)


def test_a_private_fact_leaves_only_in_full() -> None:
    fact = Fact("soc.serial", "abc", "/proc", private=True)
    assert fact.as_json()["value"] is None
    assert "redacted" in str(fact.as_json()["reason"])
    assert fact.as_json(full=True)["value"] == "abc"


@given(JSON_LIKE)
def test_finite_gives_strict_json_and_keeps_all_else(value: Any) -> None:
    out = finite(value)
    assert json.loads(json.dumps(out, allow_nan=False)) == out
    if not isinstance(value, float) or math.isfinite(value):
        assert type(out) is type(value)


def finding(code: str, severity: Severity, rank: int) -> Finding:
    return Finding(code, severity, "w", "y", (), "", rank)


def test_findings_stand_by_severity_then_by_cause() -> None:
    note = finding("NPU-A001", Severity.INFO, 0)
    late = finding("NPU-A002", Severity.ERROR, 400)
    early = finding("NPU-A003", Severity.ERROR, 10)
    warning = finding("NPU-A004", Severity.WARNING, 5)
    assert sorted([note, late, warning, early], key=by_cause) == [early, late, warning, note]


def test_every_entry_of_the_catalogue_says_what_why_and_what_to_do() -> None:
    assert CATALOGUE
    for code, entry in CATALOGUE.items():
        assert code == entry.code
        assert len(code) == 8, code
        assert code.startswith("NPU-"), code
        assert entry.what.strip(), code
        assert entry.why.strip(), code
        assert entry.fix or entry.severity is Severity.INFO, f"{code} has no next step"
        assert all(line.strip() for line in entry.fix), code


def test_a_value_left_out_of_a_finding_is_an_error() -> None:
    with pytest.raises(KeyError):
        make_finding("NPU-D003", "evidence", signal="SIGSEGV")
    with pytest.raises(KeyError):
        make_finding("NPU-Z999", "evidence")
