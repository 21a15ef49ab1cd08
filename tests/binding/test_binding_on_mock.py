# SPDX-License-Identifier: Apache-2.0
"""The binding, in children, on the mock of every runtime version and on its faults."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from c_probes.library_file import describe_library
from probes.child import CallResult, call_in_child
from reports.contract import Verdict

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = REPOSITORY / "build"
VERSIONS = ("1.5.2", "1.6.0", "2.0.0-beta0", "2.1.0", "2.3.2")


@pytest.fixture(scope="module", autouse=True)
def built_mock() -> None:
    command = ["make", "-s", "-C", str(REPOSITORY / "c_probes" / "mock"), f"BUILD={BUILD}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def library(version: str = "2.3.2") -> str:
    return str(BUILD / "mock" / version / "librknnrt.so")


def call(target: str, *args: object, faults: str = "", deadline_s: float = 60.0) -> CallResult:
    env = {key: value for key, value in os.environ.items() if not key.startswith("RKNN_MOCK_")}
    return call_in_child(
        f"tests.binding.mock_targets:{target}",
        *args,
        deadline_s=deadline_s,
        env={**env, "RKNN_MOCK_FAULTS": faults} if faults else env,
    )


@pytest.mark.parametrize("version", VERSIONS)
def test_a_mock_says_that_it_is_one_and_which_version(version: str) -> None:
    file = describe_library(Path(library(version)))
    assert file.is_mock
    assert file.version == tuple(int(part) for part in version.partition("-")[0].split("."))
    assert "rknn_matmul_create" in file.symbols
    assert ("rknn_mem_sync" in file.symbols) == (version != "1.5.2")


@pytest.mark.parametrize(
    ("version", "era", "converted", "layouts"),
    [
        ("1.5.2", "1.x", "UnsupportedByRuntime", 4),
        ("1.6.0", "1.x", "UnsupportedByRuntime", 4),
        ("2.0.0-beta0", "2.0", "same", 4),
        ("2.1.0", "2.1 and later", "same", 6),
        ("2.3.2", "2.1 and later", "same", 6),
    ],
)
def test_int8_is_right_in_every_layout_of_every_runtime(version: str, era: str, converted: str, layouts: int) -> None:
    result = call("int8_in_every_layout", library(version))
    assert result.verdict is Verdict.PASSED, result.sentence
    assert result.value["era"] == era
    assert result.value["converted"] == converted
    assert len(result.value["right"]) == layouts
    assert all(result.value["right"].values()), result.value["right"]
    assert result.value["remarks"] == []


def test_int4_is_seen_as_bytes_of_two_values_and_is_right() -> None:
    result = call("int4_product", library())
    assert result.value == {"dtypes": ["uint8", "uint8", "int16"], "bytes": [320, 4096], "right": True}


@pytest.mark.parametrize("version", VERSIONS[2:])
def test_dynamic_shapes_are_right_under_both_names_of_the_function(version: str) -> None:
    assert call("dynamic_shapes", library(version)).value == [True, True, True]


def test_contexts_run_side_by_side_from_threads() -> None:
    assert call("parallel_contexts", library()).value is True


def test_a_run_without_faults_has_no_error_and_no_remark() -> None:
    assert call("one_run", library()).value == {"error": None, "text": "", "remarks": []}


@pytest.mark.parametrize(
    ("faults", "error", "text"),
    [
        ("type-refused:type=2", "RknnError", "rknn_matmul_create returned -5 (RKNN_ERR_PARAM_INVALID)"),
        ("no-device", "RknnError", "need to insmod"),
        ("create-null-context", "Disagreement", "returned 0 but gave no context"),
        ("submit-failed", "RknnError", "0x200"),
        ("bind-no-memory", "RknnError", "rknn_matmul_set_io_mem returned -4 (RKNN_ERR_MALLOC_FAIL): operand B"),
        ("fail:call=rknn_matmul_run:code=-2", "RknnError", "rknn_matmul_run returned -2 (RKNN_ERR_TIMEOUT)"),
        ("fail:call=rknn_matmul_destroy:code=-7", "RknnError", "rknn_matmul_destroy returned -7"),
    ],
)
def test_a_fault_of_a_call_is_an_error_that_names_it(faults: str, error: str, text: str) -> None:
    value = call("one_run", library(), faults=faults).value
    assert value["error"] == error
    assert text in value["text"]


def test_an_error_line_beside_success_is_a_remark() -> None:
    value = call("one_run", library(), faults="create-logs-error").value
    assert value["error"] is None
    assert len(value["remarks"]) == 1
    assert "rknn_matmul_create returned 0 but logged an error" in value["remarks"][0]


@pytest.mark.parametrize(("fault", "signal_name"), [("crash", "SIGSEGV"), ("abort", "SIGABRT")])
@pytest.mark.parametrize("function", ["rknn_matmul_create", "rknn_matmul_set_io_mem", "rknn_matmul_run"])
def test_a_crash_inside_a_call_is_a_crashed_child_with_the_step(fault: str, signal_name: str, function: str) -> None:
    result = call("one_run", library(), faults=f"{fault}:call={function}")
    assert (result.verdict, result.child.signal_name) == (Verdict.CRASHED, signal_name)
    assert result.last_step == function


def test_a_run_that_never_returns_ends_at_the_deadline() -> None:
    for deadline_s in (3.0, 12.0, 48.0):  # a loaded machine may need longer to reach the call
        result = call("one_run", library(), faults="hang:call=rknn_matmul_run", deadline_s=deadline_s)
        if result.last_step == "rknn_matmul_run":
            break
    assert (result.verdict, result.last_step) == (Verdict.TIMED_OUT, "rknn_matmul_run")
    assert result.child.kill_s is not None
    assert result.child.kill_s < 10


def test_an_unknown_fault_stops_with_a_clear_line() -> None:
    result = call("one_run", library(), faults="no-such-fault")
    assert result.verdict is Verdict.FAILED
    assert result.child.exit_code == 2
    assert any("no-such-fault" in line for line in result.log)
