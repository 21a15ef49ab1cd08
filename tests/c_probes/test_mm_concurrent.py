# SPDX-License-Identifier: Apache-2.0
"""mm_concurrent against stand-in libraries."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.c_probes.probe_runs import Probes, Run

StandIn = Callable[..., Path]


def together(probes: Probes, library: Path, *more: str) -> Run:
    return probes.run("mm_concurrent", "--json", "--shape", "32x64x64", "--seconds", "0.02", *more, library=library)


def test_one_row_per_number_of_contexts_each_checked(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in())
    assert run.code == 0, run.err
    assert [row["parameters"]["masks"] for row in run.rows] == [[1], [1, 2], [1, 2, 4]]
    for count, row in enumerate(run.rows, 1):
        assert (row["name"], row["verdict"], row["checked"]) == ("core_scaling", "passed", "exact")
        assert row["parameters"]["contexts"] == count
        assert len(row["evidence"]["per_context_tops"]) == len(row["evidence"]["contexts"]) == count
        assert len(row["samples"]) >= 3
        assert all(0 < share <= 1 for share in row["evidence"]["overlap_share"])
    assert run.rows[0]["evidence"]["scaling_against_one"] == 1


def test_a_context_that_cannot_be_created_voids_its_row_and_is_named(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("WORKER_CREATE"))
    one, two, three = run.rows
    assert run.code == 1
    assert (one["verdict"], two["verdict"], three["verdict"]) == ("passed", "passed", "could-not-run")
    assert three["median"] is None and three["samples"] == []
    assert three["reason"] == "worker 2 (core mask 4): rknn_matmul_create returned -4 (RKNN_ERR_MALLOC_FAIL)"


def test_a_run_that_fails_in_one_worker_voids_the_row(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("WORKER_RUN"))
    assert run.code == 1
    assert run.rows[2]["verdict"] == "could-not-run"
    assert "worker 2 (core mask 4): rknn_matmul_run returned -2 (RKNN_ERR_TIMEOUT)" in run.rows[2]["reason"]


def test_a_result_that_went_to_another_context_is_recognised(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("WRONG_CONTEXT"))
    one, two, _ = run.rows
    assert (one["verdict"], two["verdict"]) == ("passed", "failed")
    assert two["reason"].startswith("worker 1 (core mask 2): ")
    assert two["median"] is None


def test_one_wrong_element_in_one_context_makes_the_row_wrong(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("LATE_WRONG"))
    assert run.code == 1
    assert run.rows[0]["verdict"] == "failed"
    assert "1 elements wrong in 1 of 32 rows" in run.rows[0]["reason"]
    assert run.rows[0]["evidence"]["void_run_us"]["median"] > 0


def test_a_runtime_that_takes_no_mask_has_one_row_without_a_mask(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("MASK_REFUSED"))
    assert run.code == 0
    assert [row["parameters"]["masks"] for row in run.rows] == [[0]]


def test_a_mask_asked_for_and_refused_is_unsupported(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("MASK_REFUSED"), "--masks", "1,2")
    assert [row["verdict"] for row in run.rows] == ["unsupported", "unsupported"]
    assert "rknn_matmul_set_core_mask(1) returned -1" in run.rows[0]["reason"]


def test_cores_limits_the_rows(probes: Probes, stand_in: StandIn) -> None:
    assert [row["parameters"]["contexts"] for row in together(probes, stand_in(), "--cores", "2").rows] == [1, 2]


def test_contexts_work_on_data_of_their_own(probes: Probes, stand_in: StandIn) -> None:
    run = together(probes, stand_in("WRONG_CONTEXT"), "--cores", "2")
    evidence = run.rows[1]["evidence"]["contexts"][1]
    assert evidence["wrong"]["rows"] == 32
