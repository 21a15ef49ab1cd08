# SPDX-License-Identifier: Apache-2.0
"""The lock of the NPU: one holder, named, gone with its process, and not to be tricked by links."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from c_probes.lock import Busy, Holder, LockError, NpuLock, default_path, read_holder

REPOSITORY = Path(__file__).resolve().parents[2]


@contextmanager
def other_process_holds(path: Path) -> Iterator[subprocess.Popen[str]]:
    code = (
        "import sys, time; from pathlib import Path; from c_probes.lock import NpuLock\n"
        "with NpuLock(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def test_a_second_holder_is_refused_and_told_who_has_it(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with other_process_holds(path) as process:
        with pytest.raises(Busy, match=rf"held by process {process.pid} \(.+\), since 20\d\d-") as caught:
            NpuLock(path).acquire()
        holder = caught.value.holder
        assert holder.pid == process.pid
        assert holder.since is not None
        assert abs(holder.since - time.time()) < 300


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_the_lock_dies_with_its_process(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "lock"
    with other_process_holds(path) as process:
        process.send_signal(number)
        process.wait(60)
        with NpuLock(path) as lock:
            assert lock.held
            assert read_holder(path).pid == os.getpid()


def test_waiting_gets_the_lock_when_it_is_freed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with other_process_holds(path) as process:
        with pytest.raises(Busy):
            NpuLock(path).acquire(wait_s=0.2)
        process.kill()
        lock = NpuLock(path)
        lock.acquire(wait_s=60)
        lock.release()


def test_a_child_does_not_inherit_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with NpuLock(path):
        sleeper = subprocess.Popen(["sleep", "600"], close_fds=False)
    try:
        with NpuLock(path) as lock:
            assert lock.held
    finally:
        sleeper.kill()
        sleeper.wait()


def test_taking_twice_is_an_error_and_releasing_twice_is_none(tmp_path: Path) -> None:
    lock = NpuLock(tmp_path / "lock")
    lock.acquire()
    with pytest.raises(LockError, match="already held by this object"):
        lock.acquire()
    with pytest.raises(Busy):
        NpuLock(lock.path).acquire()
    lock.release()
    lock.release()
    assert not lock.held
    assert read_holder(lock.path) == Holder(None, None, None)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("keep me")
    link = tmp_path / "lock"
    link.symlink_to(target)
    with pytest.raises(LockError, match="is a symbolic link"):
        NpuLock(link).acquire()
    link.unlink()
    link.symlink_to(tmp_path / "not there")
    with pytest.raises(LockError, match="is a symbolic link"):
        NpuLock(link).acquire()
    assert not (tmp_path / "not there").exists()
    link.unlink()
    link.hardlink_to(target)
    with pytest.raises(LockError, match="no plain file of one name"):
        NpuLock(link).acquire()
    assert target.read_text() == "keep me"


@pytest.mark.parametrize("kind", ["fifo", "directory"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "lock"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(LockError, match=r"no plain file|cannot be opened"):
        NpuLock(path).acquire()


def test_a_directory_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="cannot be opened"):
        NpuLock(tmp_path / "no" / "lock").acquire()


def test_the_shared_place_comes_first_and_the_uid_is_in_the_last(tmp_path: Path) -> None:
    shared, runtime, temp = tmp_path / "run-lock", tmp_path / "xdg", tmp_path / "tmp"
    runtime.mkdir()
    temp.mkdir()
    env = {"XDG_RUNTIME_DIR": str(runtime)}
    assert default_path(env, run_lock=shared, temp=temp) == runtime / "rknpu-kit.lock"
    assert default_path({}, run_lock=shared, temp=temp) == temp / f"rknpu-kit-{os.getuid()}.lock"
    relative = {"XDG_RUNTIME_DIR": "relative"}
    assert default_path(relative, run_lock=shared, temp=temp).parent == temp
    shared.mkdir()
    assert default_path(env, run_lock=shared, temp=temp) == shared / "rknpu-kit.lock"


@settings(max_examples=200, deadline=None)
@given(
    note=st.one_of(
        st.binary(max_size=200),
        st.dictionaries(
            st.sampled_from(["pid", "since", "command"]),
            st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.lists(st.integers())),
        ).map(lambda fields: json.dumps(fields).encode()),
    )
)
def test_any_note_in_the_file_names_a_holder_or_none(note: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "noted-lock"
    path.write_bytes(note)
    holder = read_holder(path)
    assert str(holder).isprintable()
    assert holder.pid is None or holder.pid > 0
