# SPDX-License-Identifier: Apache-2.0
"""mm_dtypes against stand-in libraries, some of which take their child down with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.c_probes.probe_runs import Probes, Run

StandIn = Callable[..., Path]


def dtypes(probes: Probes, library: Path, *more: str) -> Run:
    return probes.run("mm_dtypes", "--json", *more, library=library)


def verdicts(run: Run) -> dict[int, str]:
    return {row["parameters"]["type"]: row["verdict"] for row in run.rows}


def test_every_code_from_0_to_20_gets_a_verdict(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in())
    right = {1, 2, 3, 4, 9, 10}
    assert run.code == 0, run.err
    assert verdicts(run) == {code: "passed" if code in right else "unsupported" for code in range(21)}
    for row in run.rows:
        assert row["name"] == "dtype_support" and row["median"] is None
        assert row["evidence"]["create_code"] == (0 if row["parameters"]["type"] in right else -5)


def test_an_accepted_type_shows_its_operands_and_native_dims(probes: Probes, stand_in: StandIn) -> None:
    (row,) = dtypes(probes, stand_in(), "--types", "10").rows
    medium = next(t for t in row["evidence"]["trials"] if t["M"] == 65 and t["layout"] == "native")
    assert medium["verdict"] == "passed"
    assert medium["io_attr"]["B"] == {"type": "int4", "dims": [4, 16, 64, 32], "size_bytes": 65536}
    assert medium["io_attr"]["C"] == {"type": "int16", "dims": [32, 65, 8], "size_bytes": 33280}


def test_a_crash_is_a_verdict_with_the_signal_and_the_next_type_still_runs(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("ABORT_IN_RUN"))
    assert run.code == 1
    assert verdicts(run)[9] == "crashed"
    assert verdicts(run)[10] == "passed"
    row = run.rows[9]
    assert row["evidence"]["signal"] == "SIGABRT"
    assert row["reason"].startswith("SIGABRT during step: first run type=9")


def test_a_crash_in_create_is_a_verdict_of_each_type(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("CRASH_IN_CREATE"), "--type", "2,10")
    assert verdicts(run) == {2: "crashed", 10: "crashed"}
    assert "SIGSEGV during step: create type=2" in run.rows[0]["reason"]


def test_a_library_that_ends_the_process_with_code_0_has_not_refused(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("EXIT_IN_CREATE"), "--type", "2,10")
    assert run.code == 1
    assert verdicts(run) == {2: "crashed", 10: "crashed"}
    assert run.rows[0]["evidence"]["signal"] == "exit(0)"
    assert run.rows[0]["reason"].startswith("exit(0) during step: create type=2")


def test_a_library_that_ends_the_process_while_loading_is_not_open(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("EXIT_IN_LOAD"), "--type", "2")
    assert run.code == 3
    assert run.rows == []
    (error,) = run.of("error")
    assert error["kind"] == "not-loadable"
    assert "ended the program while it was loaded (exit code 0)" in error["message"]


def test_a_hang_is_killed_at_the_deadline(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("HANG_IN_CREATE"), "--type", "2", "--deadline", "0.3")
    assert run.code == 1
    assert verdicts(run) == {2: "timed-out"}
    assert "during step: create type=2" in run.rows[0]["reason"]


def test_a_wrong_result_fails_with_the_first_wrong_element(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("WRONG_ELEMENT"), "--type", "2")
    assert run.code == 1
    assert verdicts(run) == {2: "failed"}
    assert "first at row 0 col 3" in run.rows[0]["reason"]
    assert run.rows[0]["evidence"]["kind"] == "wrong-values"


def test_a_success_that_left_the_context_zero_fails(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("CREATE_LEAVES_ZERO"), "--type", "2")
    assert verdicts(run) == {2: "failed"}
    assert "left the context 0" in run.rows[0]["reason"]


def test_an_error_line_beside_a_success_code_is_a_disagreement(probes: Probes, stand_in: StandIn) -> None:
    (row,) = dtypes(probes, stand_in("LOGS_AND_SUCCEEDS"), "--type", "2").rows
    assert row["verdict"] == "passed"
    assert "something is not well" in row["evidence"]["disagreement"]


def test_undocumented_types_are_marked(probes: Probes, stand_in: StandIn) -> None:
    rows = dtypes(probes, stand_in(), "--type", "2,12,15").rows
    assert [row["evidence"].get("semantics") for row in rows] == [None, "undocumented", "undocumented"]


def test_no_device_is_could_not_run_with_exit_3(probes: Probes, stand_in: StandIn) -> None:
    run = dtypes(probes, stand_in("NO_DEVICE"), "--type", "1,2")
    assert run.code == 3
    assert set(verdicts(run).values()) == {"could-not-run"}
    assert "failed to open rknn device" in run.rows[0]["reason"]
