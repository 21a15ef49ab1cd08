# SPDX-License-Identifier: Apache-2.0
"""Each fault of the mock that changes speeds, limits or results leads to its finding, and its rows are marked."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.small_set import FAST, GEMM, GRID, LIMITS, MASKS, NO_CLIFF, SCALING
from probes.measurements import memory
from probes.measurements.types import SPEC
from probes.native import NativeProbe
from reports.contract import Verdict
from tests.measure.conftest import OFF, RunMeasure, until_found


def test_a_clean_library_raises_no_finding(run_measure: RunMeasure) -> None:
    for seed in range(1, 6):
        outcome = run_measure(FAST, timing=NO_CLIFF, seed=seed)
        assert outcome.codes == set(), [finding.what for finding in outcome.findings]
        rows = [*outcome.rows("gemm_rate"), *outcome.rows("core_scaling"), *outcome.rows("run_cost")]
        assert len(rows) == 4 + 3 + 1
        assert all(row.verdict is Verdict.PASSED and row.median for row in rows)


def test_contexts_that_queue_are_found(run_measure: RunMeasure, blind: Path) -> None:
    outcome = until_found(
        "NPU-P021", lambda: run_measure((SCALING,), timing=NO_CLIFF, faults="contexts-serialised", root=blind)
    )
    assert "NPU-P021" in outcome.codes
    (fit,) = outcome.rows("core_scaling_fit")
    assert fit.median is not None
    assert fit.median > 0.6
    assert fit.evidence["verdict"] == "one after the other"


def test_a_mask_that_is_ignored_is_found_and_one_that_is_refused_is_not(run_measure: RunMeasure, blind: Path) -> None:
    ignored = until_found("NPU-P023", lambda: run_measure((MASKS,), timing=NO_CLIFF, faults="mask-ignored", root=blind))
    assert "NPU-P023" in ignored.codes
    assert {row.parameters["core_mask"] for row in ignored.rows("core_mask")} == {0, 1, 2, 3, 4, 7}
    honest = run_measure((MASKS,), timing=NO_CLIFF)
    assert "NPU-P023" not in honest.codes
    codes = {row.parameters["core_mask"]: row.evidence["core_mask_code"] for row in honest.rows("core_mask")}
    assert codes[3] == codes[7] == -1
    assert codes[1] == codes[0] == 0


def test_heat_that_takes_speed_away_is_found_and_its_rows_are_invalid(run_measure: RunMeasure, blind: Path) -> None:
    """Ten runs of 0.1 s and, as the heat grows, of up to 0.3 s: beside that, waiting for a CPU is short."""
    arguments = ("--shape", "32x64x64", "--seconds", "1.2")
    slow = replace(GEMM, plan=lambda setting: tuple(replace(p, arguments=arguments) for p in GEMM.plan(setting)))
    timing, fault = f"{NO_CLIFF},fixed_us=100000", "thermal:after_s=0:over_s=1.6:floor=0.3"
    outcome = until_found("NPU-P025", lambda: run_measure((slow,), timing=timing, faults=fault, root=blind))
    assert "NPU-P025" in outcome.codes
    marked = [reason for row in outcome.rows("gemm_rate") for reason in row.validity.reasons]
    assert any(reason.startswith("noisy") for reason in marked)


def test_run_times_that_scatter_are_found_and_their_rows_are_invalid(run_measure: RunMeasure, blind: Path) -> None:
    outcome = until_found(
        "NPU-P026", lambda: run_measure((GEMM,), timing=NO_CLIFF, faults="jitter:percent=80", root=blind)
    )
    assert "NPU-P026" in outcome.codes
    noisy = [row for row in outcome.rows("gemm_rate") if any(r.startswith("noisy") for r in row.validity.reasons)]
    assert len(noisy) >= 2


def test_a_slow_normal_layout_is_found(run_measure: RunMeasure, blind: Path) -> None:
    outcome = until_found(
        "NPU-P024", lambda: run_measure((GRID,), timing=NO_CLIFF, faults="slow-norm:factor=20", root=blind)
    )
    assert "NPU-P024" in outcome.codes


def test_a_clock_stuck_low_shows_as_a_rate_far_below_the_rated_one(run_measure: RunMeasure, blind: Path) -> None:
    outcome = until_found("NPU-P027", lambda: run_measure((GEMM,), timing=NO_CLIFF, faults="clock-low", root=blind))
    assert "NPU-P027" in outcome.codes
    (best, *_) = outcome.rows("gemm_ceiling")
    share = best.evidence["share_of_rated"]
    assert isinstance(share, float)
    assert share < 0.1


def board_with_npu_clock(root: Path, now_hz: int) -> Path:
    """A fake root whose NPU reaches 1 GHz and stands at ``now_hz``, on an idle machine."""
    folder = root / "sys/class/devfreq/fdab0000.npu"
    folder.mkdir(parents=True)
    (folder / "cur_freq").write_text(f"{now_hz}\n")
    (folder / "max_freq").write_text("1000000000\n")
    (folder / "available_frequencies").write_text("300000000 600000000 1000000000\n")
    (folder / "governor").write_text("rknpu_ondemand\n")
    (root / "proc").mkdir()
    (root / "proc/stat").write_text("cpu  1 0 1 1000 0 0 0 0 0 0\ncpu0 1 0 1 1000 0 0 0 0 0 0\n")
    return root


@pytest.mark.parametrize(("now_hz", "low"), [(200_000_000, True), (1_000_000_000, False)])
def test_a_clock_that_stays_low_during_rows_makes_them_invalid_and_is_found(
    run_measure: RunMeasure, tmp_path: Path, now_hz: int, low: bool
) -> None:
    root = board_with_npu_clock(tmp_path, now_hz)
    outcome = run_measure((GEMM,), timing=NO_CLIFF, simulated=False, root=root)
    assert ("NPU-P011" in outcome.codes) is low
    for row in outcome.rows("gemm_rate"):
        assert any(reason.startswith("clock low: npu 200 MHz") for reason in row.validity.reasons) is low
        assert row.validity.valid is not low or not low


def test_a_low_clock_that_the_facts_told_is_not_told_again(run_measure: RunMeasure, tmp_path: Path) -> None:
    root = board_with_npu_clock(tmp_path, 200_000_000)
    outcome = run_measure((GEMM,), timing=NO_CLIFF, simulated=False, root=root, known=frozenset({"NPU-P011"}))
    assert "NPU-P011" not in outcome.codes
    assert not any(row.validity.valid for row in outcome.rows("gemm_rate"))


def test_a_wrong_element_leaves_no_number(run_measure: RunMeasure) -> None:
    outcome = run_measure(FAST, timing=OFF, faults="off-by-one:after=3")
    assert "NPU-C034" in outcome.codes
    assert outcome.rows("gemm_rate")
    for row in outcome.rows("gemm_rate"):
        assert row.verdict is Verdict.FAILED
        assert row.median is None
        assert not row.validity.valid


@pytest.mark.parametrize("program", ["mm_cost", "mm_masks", "mm_grid", "mm_stream", "mm_memory", "mm_limits"])
def test_no_probe_gives_a_number_for_a_wrong_result(run_measure: RunMeasure, program: str) -> None:
    arguments = {"mm_limits": ("--quick", "--type", "2"), "mm_grid": ("--quick", "--type", "2", "--seconds", "0.01")}
    chosen = arguments.get(program, () if program == "mm_memory" else ("--seconds", "0.02"))
    spec = replace(SPEC, plan=lambda _setting: (NativeProbe("wrong", program, chosen, 60.0, "wrong results"),))
    outcome = run_measure((spec,), faults="off-by-one")
    rows = [event for event in outcome.events if getattr(event, "median", None) is not None]
    assert rows == []
    assert outcome.steps["wrong"].verdict is Verdict.FAILED


def test_a_run_that_never_returns_ends_its_step_and_the_others_go_on(run_measure: RunMeasure) -> None:
    hanging = replace(GEMM, plan=lambda setting: tuple(replace(probe, deadline_s=1.5) for probe in GEMM.plan(setting)))
    after = replace(memory.LEAKS, plan=lambda setting: (replace(memory.LEAKS.plan(setting)[0], deadline_s=1.5),))
    outcome = run_measure((hanging, after), faults="hang:call=rknn_matmul_run:n=60")
    assert outcome.steps["library"].verdict is Verdict.PASSED
    assert outcome.steps["gemm"].verdict is Verdict.TIMED_OUT
    assert "NPU-D004" in outcome.codes
    assert outcome.steps["leaks"].verdict is Verdict.TIMED_OUT


def test_descriptors_that_are_left_open_are_found(run_measure: RunMeasure) -> None:
    outcome = run_measure((memory.LEAKS,), faults="fd-leak")
    assert outcome.codes == {"NPU-R040"}
    slopes = [row.median for row in outcome.rows("npu_memory") if row.parameters["part"] == "descriptors"]
    assert slopes == [3, 1]


def test_memory_that_grows_with_every_run_is_found(run_measure: RunMeasure) -> None:
    outcome = run_measure((memory.LEAKS,), faults="memory-leak")
    assert "NPU-R041" in outcome.codes
    slope = next(row.median for row in outcome.rows("npu_memory") if row.parameters["over"] == "run")
    assert slope == pytest.approx(43008, rel=0.1)


def test_handles_that_do_not_come_back_are_found(run_measure: RunMeasure) -> None:
    outcome = run_measure((memory.RISKY[0],), faults="handles-exhausted:contexts=40")
    assert "NPU-R042" in outcome.codes


def test_a_sound_library_passes_at_its_limits(run_measure: RunMeasure) -> None:
    outcome = run_measure(memory.RISKY, timing=OFF)
    assert outcome.codes == set()
    by_part = {str(row.parameters["part"]): row for row in outcome.rows("npu_memory")}
    assert by_part["contexts"].median == 150
    assert by_part["contexts"].evidence["descriptors_left_over"] == 0
    ceiling = by_part["ceiling"]
    assert ceiling.median is not None
    assert ceiling.median > 0
    assert by_part["domain_switch"].verdict is Verdict.PASSED


@pytest.mark.parametrize(
    ("fault", "code"), [("k-refused:limit=4096", "NPU-L050"), ("n-refused:limit=4096", "NPU-L050")]
)
def test_a_limit_that_is_refused_is_told_as_a_note(run_measure: RunMeasure, fault: str, code: str) -> None:
    outcome = run_measure((LIMITS,), faults=fault)
    assert code in outcome.codes
    dimension = fault[0].upper()
    limits = {
        str(row.parameters["limit"]): row.median
        for row in outcome.rows("shape_limit")
        if row.parameters["dimension"] == dimension
    }
    assert limits["accepted"] == limits["right"] == 4096
