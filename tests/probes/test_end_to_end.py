# SPDX-License-Identifier: Apache-2.0
"""A run as a user starts it: on the mock, on libraries that go wrong, and with requests that cannot be met."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from probes.measurements import Setting, select
from tests.probes.conftest import CHECKOUT, Outcome, Probe

SCHEMA: dict[str, Any] = json.loads((CHECKOUT / "reports/schema/capability_report.schema.json").read_text())
FAST = {"RKNN_MOCK_TIMING": "off"}
"""The mock without its waiting: what is tested here is the run, not a speed."""


def whole(outcome: Outcome) -> dict[str, Any]:
    """The report of ``outcome``, having seen that it is whole and that nothing ended in a traceback."""
    assert "Traceback" not in outcome.err, outcome.err
    assert outcome.report is not None
    jsonschema.Draft202012Validator(SCHEMA).validate(outcome.report)
    assert outcome.report["run"]["complete"] is True
    assert outcome.report["run"]["exit_code"] == outcome.code
    assert outcome.events[0]["event"] == "run-started"
    assert outcome.events[-1] == {**outcome.events[-1], "event": "run-ended", "exit_code": outcome.code}
    return outcome.report


@pytest.fixture(scope="module")
def mock_run(built: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One whole run on the mock with the published timing: its page and its report."""
    folder = tmp_path_factory.mktemp("mock_run")
    file = folder / "report.json"
    done = subprocess.run(
        [sys.executable, "-m", "probes", "--mock", "--seed", "1", "--output", str(file)],
        cwd=CHECKOUT,
        env={**os.environ, "RKNPU_KIT_LOCK": str(folder / "npu.lock")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return {"page": done.stdout, "err": done.stderr, "report": json.loads(file.read_text())}


def rows(run: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for row in run["report"]["measurements"] if row["name"] == name]


def test_a_run_on_the_mock_is_whole_and_says_simulated_everywhere(mock_run: dict[str, Any]) -> None:
    report = mock_run["report"]
    jsonschema.Draft202012Validator(SCHEMA).validate(report)
    assert report["simulated"] is True
    assert report["simulation"]["persona"] == "rk3588"
    assert report["run"]["library"]["mock"] is True
    assert len(report["run"]["library"]["sha256"]) == 64
    assert mock_run["page"].count("SIMULATED") >= 4
    assert "Traceback" not in mock_run["err"]


def test_every_step_of_a_run_on_the_mock_passes_and_says_what_it_covered(mock_run: dict[str, Any]) -> None:
    steps = {step["name"]: step for step in mock_run["report"]["steps"]}
    planned = {step.step for spec in select("medium") for step in spec.plan(Setting("medium"))}
    assert set(steps) == {"facts", "library", *planned}
    for name, step in steps.items():
        assert step["verdict"] == "passed", (name, step)
        assert step["covered"]


def test_every_number_from_the_mock_is_proven_exact(mock_run: dict[str, Any]) -> None:
    numbers = [row for row in mock_run["report"]["measurements"] if row["median"] is not None]
    assert len(numbers) >= 80
    for row in numbers:
        assert row["checked"] == "exact", row["parameters"]
        assert row["verdict"] == "passed", row["parameters"]
        assert row["samples"], row["parameters"]
        if "derived_from" not in row["evidence"]:
            assert row["evidence"]["conditions"]["samples"] >= 2


def test_the_published_figures_come_back_roughly(mock_run: dict[str, Any]) -> None:
    """Within a fifth here, by the best sample, for load only slows a run; the close comparison is bench/truth.py."""
    square = [
        row
        for row in rows(mock_run, "gemm_rate")
        if row["parameters"]["type"] == 2
        and row["parameters"]["M"] == row["parameters"]["K"] == 4096
        and row["parameters"].get("series") != "grid"
    ]
    assert square
    for row in square:
        assert max(row["samples"]) == pytest.approx(0.69, rel=0.2), row["parameters"]
    together = {row["parameters"]["contexts"]: max(row["samples"]) for row in rows(mock_run, "core_scaling")}
    assert together[3] == pytest.approx(1.83, rel=0.2)
    assert "NPU-P022" in [finding["code"] for finding in mock_run["report"]["findings"]]


def test_dtype_support_lists_all_type_codes(mock_run: dict[str, Any]) -> None:
    support = {row["parameters"]["type"]: row["verdict"] for row in rows(mock_run, "dtype_support")}
    assert sorted(support) == list(range(21))
    assert support[1] == support[2] == support[10] == "passed"
    assert support[13] == support[0] == "unsupported"


def test_one_wrong_element_is_found_and_named(probe: Probe) -> None:
    outcome = probe("--mock", "--seed", "1", "--only", "gemm", env={**FAST, "RKNN_MOCK_FAULTS": "off-by-one"})
    report = whole(outcome)
    assert outcome.code == 1
    assert "NPU-C034" in outcome.codes
    wrong = [row for row in report["measurements"] if row["name"] == "gemm_rate" and row["verdict"] == "failed"]
    assert wrong
    assert all(row["median"] is None for row in wrong)
    assert "expected" in wrong[0]["reason"]
    assert "WRONG" in outcome.out


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("no_matmul", "NPU-D002"),
        ("crash", "NPU-D003"),
        ("hang", "NPU-D004"),
        ("no_device", "NPU-D007"),
    ],
)
def test_a_library_that_goes_wrong_costs_one_finding(
    probe: Probe, stand_in: Callable[[str], Path], fault: str, code: str
) -> None:
    started = time.monotonic()
    chosen = [word for name in ("types", "gemm", "scaling") for word in ("--only", name)]
    outcome = probe("--library", str(stand_in(fault)), *chosen)
    report = whole(outcome)
    assert outcome.code in (1, 3)
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert [finding["code"] for finding in errors] == [code]
    assert report["simulated"] is True  # no figure of a machine without an NPU is a figure of an NPU
    assert [step["verdict"] for step in report["steps"] if step["name"] in ("types", "gemm", "scaling")] == [
        "skipped"
    ] * 3
    assert time.monotonic() - started < 120


def test_a_crash_is_told_with_its_signal_and_its_step(probe: Probe, stand_in: Callable[[str], Path]) -> None:
    report = whole(probe("--library", str(stand_in("crash")), "--only", "types"))
    finding = next(finding for finding in report["findings"] if finding["code"] == "NPU-D003")
    assert "SIGSEGV" in finding["what"]
    assert "create" in finding["what"]


def test_a_library_that_contradicts_itself_costs_one_finding(probe: Probe) -> None:
    outcome = probe("--mock", env={**FAST, "RKNN_MOCK_FAULTS": "create-null-context"})
    report = whole(outcome)
    assert outcome.code == 1
    errors = [finding for finding in report["findings"] if finding["severity"] == "error"]
    assert [finding["code"] for finding in errors] == ["NPU-D011"]
    assert "context 0" in errors[0]["what"]


def test_what_the_library_logged_is_the_evidence(probe: Probe, stand_in: Callable[[str], Path]) -> None:
    report = whole(probe("--library", str(stand_in("no_device")), "--only", "types"))
    finding = next(finding for finding in report["findings"] if finding["code"] == "NPU-D007")
    assert "failed to open rknn device" in finding["what"] + finding["evidence"]


def test_a_file_that_is_no_library_costs_one_finding(probe: Probe, tmp_path: Path) -> None:
    text = tmp_path / "librknnrt.so"
    text.write_text("not a library\n")
    outcome = probe("--library", str(text), "--only", "types")
    report = whole(outcome)
    assert outcome.code in (1, 3)
    assert [f["code"] for f in report["findings"] if f["severity"] == "error"] == ["NPU-D001"]


def test_level_quick_calls_no_library(probe: Probe) -> None:
    outcome = probe("--level", "quick")
    report = whole(outcome)
    assert report["run"]["library"] is None
    assert report["measurements"] == []
    assert [step["name"] for step in report["steps"]] == ["facts"]


def test_output_to_nowhere_prints_the_page_alone(probe: Probe) -> None:
    outcome = probe("--level", "quick", "--output", "-", output=False)
    assert outcome.report is None
    assert "Verdict:" in outcome.out
    assert "Report:" not in outcome.out


def test_json_on_standard_output_is_the_report(probe: Probe) -> None:
    outcome = probe("--level", "quick", "--json")
    assert json.loads(outcome.out) == outcome.report


def test_a_pasted_block_is_short_and_ascii(probe: Probe) -> None:
    outcome = probe("--level", "quick", "--paste")
    lines = outcome.out.splitlines()
    assert 5 <= len(lines) <= 60
    assert outcome.out.isascii()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["--nonsense"], "--nonsense"),
        (["--level", "deep"], "deep"),
        (["--root", "/does/not/exist"], "does not exist"),
        (["--root", "/etc/passwd"], "is no folder"),
        (["--root", "/etc/passwd/x"], "cannot be read: not a directory"),
        (["--library", "/etc/passwd/x.so"], "cannot be read: not a directory"),
        (["--library", "x" * 300], "cannot be read: file name too long"),
        (["--library", "/does/not/exist.so"], "does not exist"),
        (["--library", "/"], "is no file"),
        (["--only", "everything"], "names no measurement"),
        (["--only", "soak"], "Add --level long"),
        (["--level", "long", "--only", "ceiling"], "Add --allow-risky"),
        (["--allow-risky"], "belongs to level long"),
        (["--level", "quick", "--only", "gemm"], "measures nothing"),
        (["--library", "x", "--mock"], "Use one of them"),
        (["--seed", "many"], "no whole number"),
        (["--seed", "0"], "between 1 and"),
        (["--output", "/proc/nowhere"], "cannot make the directory"),
        (["capture", "--nonsense"], "--nonsense"),
    ],
)
def test_a_request_that_cannot_be_met_gets_a_sentence_and_exit_code_2(
    probe: Probe, arguments: list[str], word: str
) -> None:
    outcome = probe(*arguments, output=False)
    assert outcome.code == 2
    assert word in outcome.err
    assert "Traceback" not in outcome.err


def test_a_report_that_exists_is_kept_without_force(probe: Probe) -> None:
    first = probe("--level", "quick", "--seed", "1")
    assert first.code == 0
    second = probe("--level", "quick", "--seed", "2")
    assert second.code == 2
    assert "--force" in second.err
    assert second.report is not None
    assert second.report["run"]["seed"] == 1
    third = probe("--level", "quick", "--seed", "2", "--force")
    assert third.code == 0
    assert third.report is not None
    assert third.report["run"]["seed"] == 2


HOLDER = """
import sys, time
from pathlib import Path
from c_probes.lock import NpuLock
with NpuLock(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(900)
"""


def test_a_second_run_at_the_same_time_names_the_first(probe: Probe, tmp_path: Path) -> None:
    lock = tmp_path / "npu.lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], cwd=CHECKOUT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        outcome = probe("--mock", env=FAST)
        assert outcome.code == 1
        assert "NPU-S002" in outcome.codes
        assert str(holder.pid) in outcome.out
        assert outcome.step("measurements")["verdict"] == "could-not-run"
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()


def children_of(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_a_log_no_child_and_a_free_lock(
    probe: Probe, built: Path, tmp_path: Path, kill: signal.Signals
) -> None:
    file = tmp_path / "out" / "report.json"
    run = subprocess.Popen(
        [sys.executable, "-m", "probes", "--mock", "--output", str(file)],
        cwd=CHECKOUT,
        env={**os.environ, "RKNPU_KIT_LOCK": str(tmp_path / "npu.lock"), "RKNN_MOCK_TIMING": "campaign"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = file.with_name("report.events.jsonl")
    deadline = time.monotonic() + 120
    while not (log.exists() and '"gemm"' in log.read_text() and children_of(run.pid)):
        assert time.monotonic() < deadline
        assert run.poll() is None
        time.sleep(0.05)
    children = children_of(run.pid)
    assert children
    run.send_signal(kill)
    code = run.wait(timeout=60)
    deadline = time.monotonic() + 30
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "a child outlived the run"
        time.sleep(0.05)
    events = [json.loads(line) for line in log.read_text().splitlines()]
    if kill is signal.SIGTERM:
        assert code == 3
        assert events[-1]["event"] == "run-ended"
        assert json.loads(file.read_text())["run"]["exit_code"] == 3
        return
    assert events[-1]["event"] != "run-ended"
    after = probe("--level", "quick", "--force")
    assert "NPU-S003" in after.codes
    assert "cut short at: gemm" in after.out
