# SPDX-License-Identifier: Apache-2.0
"""Conclusions from rows: pure functions, on rows written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.measure import pace_of, without_repeats
from probes.measurements import (
    MEASUREMENTS,
    SelectionError,
    Setting,
    cost,
    cpu,
    gemm,
    limits,
    listing,
    memory,
    scaling,
    select,
    stream,
)
from probes.row_conditions import condition_findings, steady_fall
from probes.rows import undisturbed
from reports.catalogue import make_finding
from reports.contract import Checked, Measurement, Validity, Verdict

BUSY = "background load: other processes kept 1.20 of 2 CPUs busy over 3.0 s"
LIGHT = "background load: other processes kept 0.20 of 2 CPUs busy over 3.0 s"


def row(name: str, median: float | None, reasons: tuple[str, ...] = (), **parts: Any) -> Measurement:
    evidence = parts.pop("evidence", {})
    samples = parts.pop("samples", ())
    unit = parts.pop("unit", "tops")
    return Measurement(
        name=name,
        parameters=parts,
        unit=unit,
        median=median,
        mad=0.0,
        samples=samples,
        checked=Checked.EXACT,
        verdict=Verdict.PASSED if median is not None else Verdict.UNSUPPORTED,
        validity=Validity(not reasons, reasons),
        method="how",
        reason=None if median is not None else "why",
        evidence=evidence,
    )


@given(st.floats(0, 0.95), st.integers(2, 8))
@settings(max_examples=60, deadline=None)
def test_the_serial_share_of_amdahls_law_comes_back(share: float, cores: int) -> None:
    speedup = {n: 1 / (share + (1 - share) / n) for n in range(1, cores + 1)}
    found = scaling.serial_share(speedup)
    assert found == pytest.approx(share, abs=2e-4)


def test_one_context_alone_says_nothing_about_scaling() -> None:
    assert scaling.serial_share({1: 1.0}) is None
    assert scaling.conclude([row("core_scaling", 0.69, contexts=1)], Setting()).rows == ()


def test_a_share_far_below_the_rated_figure_is_told_and_a_usual_one_is_not() -> None:
    def codes(tops: float, reasons: tuple[str, ...] = ()) -> list[str]:
        rows = [row("gemm_rate", tops, reasons, type=2, M=512, K=4096, N=4096, B_layout="native", AC_layout="norm")]
        return [finding.code for finding in gemm.conclude(rows, Setting(cores=3, rated_tops=6.0)).findings]

    assert codes(0.14) == ["NPU-P027"]
    assert codes(0.69) == []
    assert codes(0.14, (BUSY,)) == []
    assert codes(0.14, (LIGHT,)) == ["NPU-P027"]


def test_the_ceiling_is_the_best_of_its_family_with_ridge_and_points() -> None:
    common: dict[str, Any] = {
        "type": 2,
        "type_name": "i8",
        "B_layout": "native",
        "AC_layout": "norm",
        "B_quant": "per_layer",
    }
    rows = [
        row("gemm_rate", 0.02, M=1, K=1024, N=1024, evidence={"ops_per_byte": 2.0}, **common),
        row("gemm_rate", 0.60, M=512, K=1024, N=1024, evidence={"ops_per_byte": 300.0}, **common),
    ]
    (ceiling,) = gemm.conclude(rows, Setting(cores=3, rated_tops=6.0)).rows
    assert ceiling.median == 0.60
    assert ceiling.evidence["at"] == [512, 1024, 1024]
    assert ceiling.evidence["share_of_rated"] == pytest.approx(0.30)
    assert ceiling.evidence["stream_at_M_1_gbps"] == pytest.approx(10.0)
    assert ceiling.evidence["ridge_ops_per_byte"] == pytest.approx(60.0)
    points = ceiling.evidence["roofline_points"]
    assert isinstance(points, list)
    assert len(points) == 2


def test_rounding_up_of_M_is_found_where_the_time_steps() -> None:
    times = {4: 100.0, 5: 190.0, 8: 195.0, 9: 200.0, 16: 205.0, 17: 400.0}
    found = cost.buckets([row("run_time", us, unit="us", M=m, K=1024, N=1024) for m, us in times.items()])
    assert found is not None
    assert found.evidence["steps_above_M"] == [4, 16]
    assert found.median == pytest.approx(400 / 205 - 1)
    assert cost.buckets([row("run_time", 1.0, unit="us", M=4)]) is None


@pytest.mark.parametrize(
    ("limit", "dimension", "evidence", "code"),
    [
        ("accepted", "K", {"ends_by": "refused", "ends_at": 8224, "why": "returned -1"}, "NPU-L050"),
        ("right", "K", {"ends_by": "wrong", "ends_at": 8224, "why": "row 0"}, "NPU-L051"),
        ("fast", "K", {"ends_by": "slow", "ends_at": 8224, "slower_times": 14.0}, "NPU-P022"),
        ("fast", "N", {"ends_by": "slow", "ends_at": 8224, "slower_times": 3.0}, "NPU-P028"),
        ("fast", "K", {"ends_by": "refused", "ends_at": 8224}, None),
        ("accepted", "K", {"at_least": True}, None),
    ],
)
def test_each_end_of_a_dimension_has_its_finding(
    limit: str, dimension: str, evidence: dict[str, Any], code: str | None
) -> None:
    end = row(
        "shape_limit", 8192.0, unit="elements", type_name="int8_int8_int32", dimension=dimension, limit=limit,
        evidence=evidence,
    )  # fmt: skip
    found = [finding.code for finding in limits.conclude([end], Setting()).findings]
    assert found == ([code] if code else [])


def test_the_exact_cliff_replaces_the_coarse_one() -> None:
    coarse = make_finding(
        "NPU-P022", "0.05 TOPS at K=15360", k=15360, k_ref=4096, ratio=14, type_name="i8", k_limit=4096
    )
    exact = make_finding("NPU-P022", "K = 8224: slow", k=8224, k_ref=8192, ratio=13, type_name="i8", k_limit=8192)
    other = make_finding(
        "NPU-P022", "0.05 TOPS at K=15360", k=15360, k_ref=4096, ratio=14, type_name="f16", k_limit=4096
    )
    assert without_repeats([coarse, other, exact]) == [other, exact]
    assert without_repeats([coarse, coarse]) == [coarse]


def test_slopes_above_nothing_are_leaks() -> None:
    def codes(part: str, slope: float, over: str = "run") -> list[str]:
        rows = [row("npu_memory", slope, unit="x", part=part, over=over, evidence={"cycles": 64})]
        return [finding.code for finding in memory.leaks(rows, Setting()).findings]

    assert codes("descriptors", 0.0) == []
    assert codes("descriptors", 1.0) == ["NPU-R040"]
    assert codes("resident", 0.0) == []
    assert codes("resident", 43008.0) == ["NPU-R041"]


def test_shares_of_theory_need_a_theory() -> None:
    streams = [row("npu_stream", 26.6, unit="gbps", contexts=3)]
    assert stream.conclude(streams, Setting()).rows == ()
    (share,) = stream.conclude(streams, Setting(ddr_gbps=51.2)).rows
    assert share.median == pytest.approx(26.6 / 51.2)
    reads = [row("cpu_bandwidth", 25.6, unit="gbps", op="read", cpus="4-7", threads=4)]
    assert cpu.bandwidth_share(reads, Setting(ddr_gbps=51.2, simulated=True)).rows == ()
    (share,) = cpu.bandwidth_share(reads, Setting(ddr_gbps=51.2)).rows
    assert share.median == pytest.approx(0.5)


def test_pinning_pays_where_a_set_beats_all_cpus() -> None:
    rows = [
        row("cpu_rate", 10.0, unit="gops", cpus="0-3", threads=4, split="even"),
        row("cpu_rate", 40.0, unit="gops", cpus="4-7", threads=4, split="even"),
        row("cpu_rate", 20.0, unit="gops", cpus="0-7", threads=8, split="even"),
    ]
    (gain,) = cpu.pinning(rows, Setting()).rows
    assert gain.parameters == {"cpus": "4-7", "against": "0-7"}
    assert gain.median == pytest.approx(2.0)


def test_a_row_worked_out_from_an_invalid_one_is_invalid() -> None:
    (share,) = stream.conclude([row("npu_stream", 26.6, (LIGHT,), contexts=3)], Setting(ddr_gbps=51.2)).rows
    assert share.validity == Validity(False, (LIGHT,))


def test_heavy_load_alone_takes_a_row_out_of_judgement() -> None:
    assert undisturbed(row("gemm_rate", 1.0))
    assert undisturbed(row("gemm_rate", 1.0, (LIGHT,)))
    assert not undisturbed(row("gemm_rate", 1.0, (BUSY,)))


def test_only_a_fall_all_the_way_is_a_fall() -> None:
    assert steady_fall([10, 9, 8, 7, 6, 5, 4, 3, 2]) == pytest.approx(1 - 3 / 9)
    assert steady_fall([10, 5, 10, 5, 10, 5, 10, 5, 10]) == 0
    assert steady_fall([2, 3, 4, 5, 6, 7, 8, 9, 10]) == 0
    assert steady_fall([10, 5]) == 0
    falling = (10.0, 9.5, 9.0, 8.5, 8.0, 7.5, 7.0, 6.5, 6.0)
    hot = row("gemm_rate", 8.0, samples=falling, M=4, K=4, N=4, evidence={"run_us": {"median": 5000.0}})
    assert [finding.code for finding in condition_findings([hot])] == ["NPU-P025"]
    short = row("gemm_rate", 8.0, samples=falling, evidence={"run_us": {"median": 50.0}})
    assert condition_findings([short]) == []


def test_deadlines_follow_the_pace_of_the_machine_within_bounds() -> None:
    assert pace_of(0.1) == 1.0
    assert pace_of(3.0) == pytest.approx(3.0)
    assert pace_of(1000.0) == 6.0


def test_levels_hold_what_they_promise() -> None:
    medium, long_run = select("medium"), select("long")
    risky = select("long", allow_risky=True)
    assert not any(spec.risky for spec in (*medium, *long_run))
    assert {spec.name for spec in risky} - {spec.name for spec in long_run} == {"contexts", "ceiling", "domains"}
    assert "soak" in {spec.name for spec in long_run}
    assert [spec.name for spec in select("medium", ("leaks", "gemm"))] == ["gemm", "leaks"]
    with pytest.raises(SelectionError, match="names no measurement"):
        select("medium", ("everything",))
    with pytest.raises(SelectionError, match="--level long"):
        select("medium", ("soak",))
    with pytest.raises(SelectionError, match="--allow-risky"):
        select("long", ("ceiling",))


def test_every_measurement_is_listed_with_its_texts_and_every_step_has_a_name_of_its_own() -> None:
    text = listing()
    for spec in MEASUREMENTS:
        assert f"\n{spec.name}  (level" in "\n" + text
        assert spec.what in text
        assert spec.how in text
        assert spec.spoiled_by in text
    for level in ("medium", "long"):
        steps = [
            probe.step for spec in select(level, allow_risky=level == "long") for probe in spec.plan(Setting(level))
        ]
        assert len(steps) == len(set(steps))
        assert all(len(step) <= 15 for step in steps)
