# SPDX-License-Identifier: Apache-2.0
"""Children that crash, hang, flood, fork and refuse to die: each ends in time, and as what it was."""

from __future__ import annotations

import itertools
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.child import CallResult, ChildResult, Limits, call_in_child, run_child
from probes.child_output import HeadTail, LineSplitter
from reports.contract import Verdict
from tests.binding import child_targets

REPOSITORY = Path(__file__).resolve().parents[2]
GENEROUS_S = 60.0
Result = TypeVar("Result", ChildResult, CallResult)


def shell(script: str, deadline_s: float = GENEROUS_S, limits: Limits | None = None) -> ChildResult:
    return run_child(["/bin/sh", "-c", script], deadline_s=deadline_s, limits=limits or Limits())


def python(code: str, deadline_s: float = GENEROUS_S, limits: Limits | None = None) -> ChildResult:
    return run_child([sys.executable, "-c", code], deadline_s=deadline_s, limits=limits or Limits())


def call(name: str, *args: object, deadline_s: float = GENEROUS_S) -> CallResult:
    return call_in_child(f"tests.binding.child_targets:{name}", *args, deadline_s=deadline_s)


def once_ready(run: Callable[[float], Result], ready: Callable[[Result], bool], first_s: float) -> Result:
    """The result with the shortest deadline that let the child get ready: a loaded machine starts slowly."""
    deadline_s = first_s
    while True:
        result = run(deadline_s)
        if ready(result) or deadline_s > GENEROUS_S:
            return result
        deadline_s *= 4


def alive(pid: int) -> bool:
    """Whether a process still runs; a zombie does not."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


def gone(pid: int) -> bool:
    end = time.monotonic() + 10
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(pid)


def test_output_and_exit_code_come_back() -> None:
    result = shell("echo one; echo two >&2; printf three; exit 3")
    assert result.stdout_lines == ("one", "three")
    assert (result.stderr, result.exit_code, result.verdict) == ("two\n", 3, Verdict.FAILED)
    assert not result.timed_out
    assert not result.ok


def test_a_child_that_ends_with_0_passed() -> None:
    result = shell("exit 0")
    assert result.ok
    assert result.verdict is Verdict.PASSED
    assert (result.signal_name, result.kill_s, result.kill_signal) == (None, None, None)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGKILL"])
def test_a_crash_is_named_by_its_signal(name: str) -> None:
    result = shell(f"kill -{name[3:]} $$")
    assert (result.signal_name, result.exit_code, result.verdict) == (name, None, Verdict.CRASHED)
    assert name in result.sentence


def test_a_program_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    script = tmp_path / "garbage"
    script.write_bytes(b"\x7fELF garbage")
    script.chmod(0o755)
    for argv, reason in (
        (["/nowhere/at/all"], "No such file or directory"),
        ([str(tmp_path)], "Permission denied"),
        ([str(script)], "Exec format error"),
        (["/bin/true", "nul\0byte"], "null byte"),
    ):
        result = run_child(argv, deadline_s=GENEROUS_S)
        assert result.verdict is Verdict.COULD_NOT_RUN
        assert result.exit_code is None
        assert reason in (result.start_error or "")


def test_a_hang_ends_at_the_deadline_by_sigterm() -> None:
    result = shell("exec sleep 600", deadline_s=0.5)
    assert (result.timed_out, result.signal_name, result.kill_signal) == (True, "SIGTERM", "SIGTERM")
    assert result.verdict is Verdict.TIMED_OUT
    assert result.kill_s is not None
    assert 0 <= result.kill_s < 10
    assert 0.5 <= result.duration_s < 20


def test_a_child_that_ignores_sigterm_is_killed_two_seconds_later() -> None:
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # which the child inherits
    try:
        result = shell("exec sleep 600", 0.5)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (result.timed_out, result.signal_name, result.kill_signal) == (True, "SIGKILL", "SIGKILL")
    assert result.kill_s is not None
    assert 2.0 <= result.kill_s < 20


def test_a_stopped_child_is_killed_as_well() -> None:
    script = "echo ready; kill -STOP $$"
    result = once_ready(
        lambda deadline_s: shell(script, deadline_s, Limits(term_grace_s=0.2)), lambda r: len(r.stdout_lines) == 1, 0.5
    )
    assert (result.timed_out, result.signal_name) == (True, "SIGKILL")


def test_a_child_that_answers_sigterm_with_exit_0_still_timed_out() -> None:
    code = (
        "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))\n"
        "print('ready', flush=True); time.sleep(600)"
    )
    result = once_ready(lambda deadline_s: python(code, deadline_s), lambda r: r.stdout_lines == ("ready",), 1.0)
    assert (result.exit_code, result.timed_out, result.verdict, result.ok) == (0, True, Verdict.TIMED_OUT, False)


@pytest.mark.parametrize("parent_end", ["exit 0", "kill -SEGV $$", "sleep 600"])
def test_grandchildren_die_with_the_child_however_it_ends(parent_end: str) -> None:
    script = f"trap '' TERM; sleep 600 & echo $!; {parent_end}"
    result = once_ready(
        lambda deadline_s: shell(script, deadline_s, Limits(term_grace_s=0.2)), lambda r: len(r.stdout_lines) == 1, 0.5
    )
    assert gone(int(result.stdout_lines[0]))
    assert result.survivors == ()


def test_a_grandchild_in_another_process_group_dies_too() -> None:
    code = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setpgid(0, 0)\n"
        "    print(os.getpid(), flush=True)\n"
        "    time.sleep(600)\n"
        "time.sleep(0.5)"
    )
    result = python(code)
    assert result.exit_code == 0
    assert gone(int(result.stdout_lines[0]))


def test_no_zombie_and_no_descriptor_is_left() -> None:
    def state() -> tuple[list[str], set[str]]:
        children = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
        return children, {entry.name for entry in Path("/proc/self/fd").iterdir()}

    shell("exit 0")
    before = state()
    for script in ("exit 0", "kill -SEGV $$", "sleep 600 & exit 1"):
        shell(script)
    shell("sleep 600", 0.2)
    run_child(["/nowhere"], deadline_s=1)
    call("double", 2)
    assert state() == before


def test_lines_arrive_while_the_child_runs() -> None:
    seen: list[float] = []
    result = run_child(
        ["/bin/sh", "-c", "echo a; sleep 1; echo b"],
        deadline_s=GENEROUS_S,
        on_line=lambda _: seen.append(time.monotonic()),
    )
    assert len(seen) == 2
    assert seen[1] - seen[0] > 0.5
    assert result.stdout_lines == ()


def test_an_error_of_the_listener_ends_the_child_and_is_passed_on() -> None:
    pids: list[int] = []

    def refuse(line: str) -> None:
        pids.append(int(line))
        raise LookupError(line)

    with pytest.raises(LookupError):
        run_child(["/bin/sh", "-c", "echo $$; exec sleep 600"], deadline_s=GENEROUS_S, on_line=refuse)
    assert gone(pids[0])


def test_ctrl_c_ends_the_child_and_its_children() -> None:
    pids: list[int] = []

    def note(line: str) -> None:
        pids.append(int(line))
        if len(pids) == 2:
            main = threading.main_thread().ident
            assert main is not None
            threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT)).start()

    with pytest.raises(KeyboardInterrupt):
        run_child(
            ["/bin/sh", "-c", "trap '' INT TERM; echo $$; sleep 600 & echo $!; sleep 600"],
            deadline_s=GENEROUS_S,
            on_line=note,
        )
    assert all(gone(pid) for pid in pids)


def test_the_child_dies_when_the_kit_is_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        "import sys; from probes.child import run_child\n"
        "run_child(['/bin/sh', '-c', 'echo $$ > ' + sys.argv[1] + '; exec sleep 600'], deadline_s=600)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(note)], cwd=REPOSITORY) as kit:
        end = time.monotonic() + GENEROUS_S
        while not (note.exists() and note.read_text().strip()) and time.monotonic() < end:
            time.sleep(0.02)
        pid = int(note.read_text())
        assert alive(pid)
        kit.kill()
    assert gone(pid)


def test_a_flood_is_bounded_and_marked() -> None:
    limits = Limits(line_bytes=100, stdout_bytes=10_000, stderr_head_bytes=50, stderr_tail_bytes=50)
    result = python(
        "import sys; print('x' * 5000); print('y\\n' * 90000); sys.stderr.write('e' * 10**6)", limits=limits
    )
    assert result.exit_code == 0
    assert result.stdout_truncated
    assert result.stdout_lines[0] == "x" * 100
    assert sum(map(len, result.stdout_lines)) <= 10_000
    assert len(result.stderr) < 200
    assert "999900 bytes left out" in result.stderr


def test_bytes_that_are_no_text_become_text() -> None:
    result = python("import os; os.write(1, b'a\\xff\\x00b\\r\\n'); os.write(2, b'\\xfe')")
    assert result.stdout_lines == ("a\ufffd\0b",)
    assert result.stderr == "\ufffd"


def test_limits_reach_the_child() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    code = (
        "import resource as r; print(*r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_NOFILE)[0],"
        "r.getrlimit(r.RLIMIT_AS)[0])"
    )
    result = python(code, limits=Limits(address_space_bytes=1 << 30))
    assert result.stdout_lines == (f"0 0 {min(hard, 1 << 20)} {1 << 30}",)


def test_the_address_space_limit_holds() -> None:
    result = python("x = bytearray(1 << 31)", limits=Limits(address_space_bytes=1 << 30))
    assert result.exit_code == 1
    assert "MemoryError" in result.stderr


def test_the_child_reads_nothing_leads_its_session_and_takes_sigpipe() -> None:
    result = shell('cat; ps -o sid= -p $$ | tr -d " "; echo $$; grep SigIgn /proc/self/status')
    session, pid, ignored = result.stdout_lines
    assert session == pid
    assert int(ignored.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


def test_what_waits_on_the_kits_own_stdin_is_not_the_childs() -> None:
    saved = os.dup(0)
    read_end, write_end = os.pipe()
    try:
        os.write(write_end, b"typed by a person\n")
        os.dup2(read_end, 0)
        assert shell("cat", 20).stdout_lines == ()
    finally:
        os.dup2(saved, 0)
        for fd in (saved, read_end, write_end):
            os.close(fd)


def test_no_descriptor_of_the_kit_reaches_the_child() -> None:
    opened_by_listing = 1
    result = python("import os; print(len(os.listdir('/proc/self/fd')))")
    assert result.stdout_lines == (str(3 + opened_by_listing),)


def test_a_grandchild_that_holds_the_pipes_does_not_hold_the_kit() -> None:
    result = shell("sleep 600 & echo $!; exit 0")
    assert result.duration_s < 30
    assert gone(int(result.stdout_lines[0]))


def test_the_environment_is_the_one_given() -> None:
    result = run_child(["/usr/bin/env"], deadline_s=GENEROUS_S, env={"ONLY": "this", "LC_ALL": "C.UTF-8"})
    assert sorted(result.stdout_lines) == ["LC_ALL=C.UTF-8", "ONLY=this"]


def test_children_run_side_by_side_from_threads() -> None:
    results: list[ChildResult] = []
    threads = [
        threading.Thread(target=lambda n=n: results.append(shell(f"sleep 0.2; echo {n}; exit {n}"))) for n in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GENEROUS_S)
    assert sorted((r.exit_code, r.stdout_lines) for r in results) == [(n, (str(n),)) for n in range(12)]


def test_a_child_that_closes_its_output_is_still_waited_for() -> None:
    result = shell("exec >&- 2>&-; sleep 0.3; exit 5")
    assert result.exit_code == 5


def test_without_pidfd_the_end_is_noticed_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open")
    assert shell("sleep 0.1; exit 4").exit_code == 4
    assert shell("sleep 600", 0.2).timed_out


def test_a_child_that_cannot_be_killed_is_reported_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """State D cannot be made at will, so the signals are kept from a child that would die of them."""
    real = os.killpg
    monkeypatch.setattr(os, "killpg", lambda *_: None)
    monkeypatch.setattr("probes.child_watch._session_members", lambda _: [])
    limits = Limits(term_grace_s=0.1, stuck_after_s=0.3)
    result = once_ready(
        lambda deadline_s: shell("echo $$; exec sleep 300", deadline_s, limits), lambda r: len(r.stdout_lines) == 1, 0.5
    )
    assert result.duration_s < 200
    assert (result.stuck, result.timed_out, result.exit_code, result.signal_name) == (True, True, None, None)
    assert result.stuck_in is not None
    assert result.stuck_in[0] in "SD"
    assert f"state {result.stuck_in}). A reboot is needed" in result.sentence
    pid = int(result.stdout_lines[0])
    real(pid, signal.SIGKILL)
    assert gone(pid)
    end = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def test_a_call_returns_its_value() -> None:
    result = call("double", 21)
    assert (result.verdict, result.value, result.error) == (Verdict.PASSED, 42, None)


def test_values_of_json_come_back_as_they_were() -> None:
    value = {"a": [1, 2.5, None, True, "\u00e9\ud83d"], "long": "x" * 300_000}
    assert call("same", value).value == value


def test_an_exception_is_a_failed_call_with_its_type_and_text() -> None:
    result = call("fail", "no such core")
    assert (result.verdict, result.error_type, result.error) == (Verdict.FAILED, "ValueError", "no such core")


def test_a_crash_is_named_with_the_last_step() -> None:
    result = call("crash_after_steps")
    assert (result.verdict, result.child.signal_name) == (Verdict.CRASHED, "SIGSEGV")
    assert result.last_step == "rknn_matmul_run"
    assert "SIGSEGV" in result.sentence
    assert "Last step: rknn_matmul_run" in result.sentence


def test_a_hang_is_ended_and_named_with_the_last_step() -> None:
    result = once_ready(
        lambda deadline_s: call("hang_after_step", deadline_s=deadline_s), lambda r: r.last_step is not None, 1.0
    )
    assert (result.verdict, result.last_step, result.value) == (Verdict.TIMED_OUT, "waiting", None)


def test_a_crash_after_the_result_keeps_the_result_but_is_a_crash() -> None:
    result = call("crash_at_exit")
    assert (result.verdict, result.value) == (Verdict.CRASHED, "done")


def test_a_child_that_leaves_without_a_result_failed() -> None:
    result = call("leave")
    assert (result.verdict, result.error_type) == (Verdict.FAILED, "NoResult")


def test_exit_called_inside_is_an_error_and_not_a_result() -> None:
    result = call("call_exit")
    assert (result.verdict, result.error_type) == (Verdict.FAILED, "SystemExit")


def test_what_a_called_function_prints_does_not_spoil_its_result() -> None:
    result = call("print_json_lookalike")
    assert result.value == "real"
    assert result.child.stdout_lines == ('{"result": "fake"}',)


def test_a_result_that_is_no_json_is_an_error() -> None:
    result = call("not_json")
    assert (result.verdict, result.error_type) == (Verdict.FAILED, "TypeError")


def test_a_function_that_does_not_exist_is_an_error() -> None:
    assert call("no_such_function").error_type == "AttributeError"
    assert call_in_child("no_such_module:f", deadline_s=GENEROUS_S).error_type == "ModuleNotFoundError"
    with pytest.raises(ValueError, match=r"write package\.module:function"):
        call_in_child("nonsense", deadline_s=1)


def test_a_step_outside_a_child_does_nothing() -> None:
    assert child_targets.double(4) == 8


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6), st.integers(1, 40), st.integers(0, 300))
def test_lines_do_not_depend_on_how_the_bytes_arrive(data: bytes, cuts: list[int], line_bytes: int, total: int) -> None:
    def lines(pieces: list[bytes]) -> tuple[list[str], bool]:
        got: list[str] = []
        splitter = LineSplitter(got.append, line_bytes=line_bytes, total_bytes=total)
        for piece in pieces:
            splitter.feed(piece)
        splitter.close()
        return got, splitter.truncated

    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    assert lines(pieces) == lines([data])
    whole = data[:total].split(b"\n")
    expected = [piece[:line_bytes].decode("utf-8", "replace").rstrip("\r") for piece in whole]
    assert lines([data])[0] == (expected[:-1] if whole[-1] == b"" else expected)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.binary(max_size=60), max_size=12), st.integers(0, 40), st.integers(0, 40))
def test_head_and_tail_are_kept_and_the_rest_is_counted(pieces: list[bytes], head: int, tail: int) -> None:
    data = b"".join(pieces)
    kept = HeadTail(head_bytes=head, tail_bytes=tail)
    for piece in pieces:
        kept.feed(piece)
    if len(data) <= head + tail:
        assert kept.text() == data.decode("utf-8", "replace")
    else:
        missing = len(data) - head - tail
        middle = f"\n[... {missing} bytes left out ...]\n".encode()
        end = data[len(data) - tail :]
        assert kept.text() == (data[:head] + middle + end).decode("utf-8", "replace")
