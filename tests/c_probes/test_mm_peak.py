# SPDX-License-Identifier: Apache-2.0
"""mm_peak against stand-in libraries whose one fault is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.c_probes.probe_runs import Probes, Run

SMALL = ("--json", "--shape", "33x64x64", "--seconds", "0.01")
StandIn = Callable[..., Path]


def peak(probes: Probes, library: Path, *more: str) -> Run:
    return probes.run("mm_peak", *SMALL, *more, library=library)


def test_a_right_library_passes_in_every_type_and_layout(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in(), "--type", "1,2,3,4,9,10", "--layout", "both", "--ac-layout", "both")
    assert run.code == 0, run.err
    assert len(run.rows) == run.of("header")[0]["rows"] == 6 * 4
    for row in run.rows:
        assert (row["verdict"], row["checked"], row["reason"]) == ("passed", "exact", None)
        assert row["median"] > 0
        assert row["unit"] == "tops"
        assert len(row["samples"]) >= 3
    assert run.records[-1] == {"record": "end", "exit_code": 0}


def test_the_rate_is_two_m_k_n_over_the_time_per_run(probes: Probes, stand_in: StandIn) -> None:
    (row,) = peak(probes, stand_in()).rows
    for tops, us in zip(row["samples"], row["run_us"]["samples"], strict=True):
        assert tops == pytest.approx(2 * 33 * 64 * 64 / us * 1e-6, rel=1e-6)


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("WRONG_ELEMENT", "wrong-values", "1 elements wrong in 1 of 33 rows; first at row 32 col 3"),
        ("C_UNTOUCHED", "not-written", "C was not written"),
        ("C_ZERO", "all-zero", "C is all zero"),
        ("SWAPPED_ROWS", "rows-swapped", "rows of C are swapped"),
        ("FIRST_RUN_WRONG", "wrong-values", "in the cold run"),
        ("LATE_WRONG", "wrong-values", "in the last timed run"),
    ],
)
def test_success_codes_do_not_hide_a_wrong_result(
    probes: Probes, stand_in: StandIn, fault: str, kind: str, words: str
) -> None:
    run = peak(probes, stand_in(fault), "--seconds", "0.05")
    (row,) = run.rows
    assert run.code == 1
    assert row["verdict"] == "failed"
    assert row["checked"] == "exact"
    assert row["median"] is None and row["samples"] == [] and row["run_us"] is None
    assert words in row["reason"]
    assert row["evidence"]["kind"] == kind
    assert row["evidence"]["void_run_us"]["median"] > 0


@pytest.mark.parametrize("code", [1, 3, 4, 9, 10])
def test_one_wrong_element_is_seen_in_every_type_of_c(probes: Probes, stand_in: StandIn, code: int) -> None:
    run = peak(probes, stand_in("WRONG_ELEMENT"), "--type", str(code), "--ac-layout", "both")
    assert run.code == 1
    assert [row["evidence"]["wrong"]["elements"] for row in run.rows] == [1, 1]
    for row in run.rows:
        wrong = row["evidence"]["wrong"]
        assert (wrong["first_row"], wrong["first_col"]) == (32, 3)
        assert wrong["got"] == wrong["expected"] + 1


def test_a_refused_type_is_unsupported_and_no_failure(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in(), "--type", "2,5")
    passed, refused = run.rows
    assert run.code == 0
    assert passed["verdict"] == "passed"
    assert refused["verdict"] == "unsupported"
    assert "rknn_matmul_create returned -5 (RKNN_ERR_PARAM_INVALID)" in refused["reason"]


def test_per_channel_refused_leaves_the_per_layer_row(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in(), "--quant", "both")
    assert [(row["parameters"]["B_quant"], row["verdict"]) for row in run.rows] == [
        ("per_layer", "passed"),
        ("per_channel", "unsupported"),
    ]


def test_no_device_is_could_not_run_with_exit_3(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in("NO_DEVICE"))
    assert run.code == 3
    assert run.rows[0]["verdict"] == "could-not-run"
    assert "failed to open rknn device" in run.rows[0]["reason"]


def test_a_context_left_zero_is_a_failure_and_is_not_used(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in("CREATE_LEAVES_ZERO"))
    assert run.code == 1
    assert "left the context 0" in run.rows[0]["reason"]


def test_dims_that_do_not_describe_the_matrix_are_refused(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in("BAD_DIMS"))
    assert run.code == 1
    assert "io_attr.B has dims 1x2x32x32, which do not describe a 64x64 matrix" in run.rows[0]["reason"]


def test_a_refused_core_mask_is_said_and_the_row_is_auto(probes: Probes, stand_in: StandIn) -> None:
    (row,) = peak(probes, stand_in("MASK_REFUSED"), "--core-mask", "2").rows
    assert row["verdict"] == "passed"
    assert row["parameters"]["core_mask"] == 0
    assert row["evidence"]["core_mask_requested"] == 2
    assert row["evidence"]["core_mask_accepted"] is False
    assert row["evidence"]["core_mask_code"] == -1


def test_an_error_line_beside_a_success_code_is_a_disagreement(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in("LOGS_AND_SUCCEEDS"))
    (row,) = run.rows
    assert row["verdict"] == "passed"
    assert "something is not well" in row["evidence"]["disagreement"]
    assert "something is not well" in run.err


def test_what_the_library_prints_on_stdout_stays_out_of_the_json_lines(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in("STDOUT_NOISE"))
    assert run.rows[0]["verdict"] == "passed"  # every line parses
    assert "printed on stdout {" in run.err
    assert "printed on stdout {" in run.rows[0]["evidence"]["log"]


def test_untrusted_log_bytes_become_valid_json(probes: Probes, stand_in: StandIn) -> None:
    (row,) = peak(probes, stand_in(), "--type", "5").rows
    assert 'dtype : "5" \ufffd in' in row["evidence"]["log"]


def test_a_crash_names_the_step_and_keeps_the_signal(probes: Probes, stand_in: StandIn) -> None:
    run = peak(probes, stand_in("CRASH_IN_CREATE"))
    assert run.code == -11
    assert run.records[-1]["step"].startswith("create type=2 M=33 K=64 N=64")
    assert "ended by SIGSEGV during step: create type=2" in run.err


@pytest.mark.parametrize("fault", ["HANG_IN_CREATE", "HANG_IN_RUN"])
def test_a_hang_ends_at_the_deadline_with_exit_3(probes: Probes, stand_in: StandIn, fault: str) -> None:
    run = peak(probes, stand_in(fault), "--deadline", "0.5")
    assert run.code == 3
    assert run.of("error")[0]["kind"] == "timed-out"
    assert ("create type=2" if fault == "HANG_IN_CREATE" else "cold run") in run.of("error")[0]["message"]
    assert run.records[-1] == {"record": "end", "exit_code": 3}


def test_the_same_seed_measures_the_same_data(probes: Probes, stand_in: StandIn) -> None:
    wrong = [
        peak(probes, stand_in("WRONG_ELEMENT"), "--seed", seed).rows[0]["evidence"]["wrong"]["expected"]
        for seed in ("7", "7", "8")
    ]
    assert wrong[0] == wrong[1] != wrong[2]


def test_the_table_shows_the_row_within_a_hundred_columns(probes: Probes, stand_in: StandIn) -> None:
    run = probes.run("mm_peak", "--shape", "33x64x64", "--type", "2,5", "--seconds", "0.01", library=stand_in())
    assert run.code == 0
    assert "i8*i8>i32" in run.out and "passed" in run.out and "unsupported" in run.out
    assert max(map(len, run.out.splitlines())) <= 100


def test_a_share_of_the_rated_figure_appears_only_when_it_is_given(probes: Probes, stand_in: StandIn) -> None:
    (without,) = peak(probes, stand_in()).rows
    (given,) = peak(probes, stand_in(), "--rated-tops", "2").rows
    assert "share_of_rated" not in without["evidence"]
    assert given["evidence"]["share_of_rated"] == pytest.approx(given["median"] / 2)


def test_bind_refused_names_the_function_and_the_operand(probes: Probes, stand_in: StandIn) -> None:
    (row,) = peak(probes, stand_in("BIND_REFUSED")).rows
    assert row["verdict"] == "unsupported"
    assert "rknn_matmul_set_io_mem of B returned -1 (RKNN_ERR_FAIL)" in row["reason"]
