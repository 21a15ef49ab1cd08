# SPDX-License-Identifier: Apache-2.0
"""The door to the file system: confined, bounded, read-only, on a list, and never stuck."""

from __future__ import annotations

import errno
import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from probes import paths
from probes.answers import Refusal
from probes.system import PathNotListed, System

MODEL = "/proc/device-tree/model"


def put(root: Path, path: str, data: bytes = b"x\n") -> Path:
    file = root / path[1:]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_an_absolute_link_resolves_inside_the_root(tmp_path: Path) -> None:
    put(tmp_path, "/sys/firmware/devicetree/base/model", b"Inside\0")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/device-tree").symlink_to("/sys/firmware/devicetree/base")
    assert System(tmp_path).strings(MODEL).value == ["Inside"]


@pytest.mark.parametrize(
    "target", ["/etc/hostname", "../../../../../../../../etc/hostname", "/proc/self/root/etc/hostname"]
)
def test_no_link_leads_out_of_the_root(tmp_path: Path, target: str) -> None:
    put(tmp_path, "/proc/device-tree/compatible", b"x\0")
    (tmp_path / "proc/device-tree/model").symlink_to(target)
    answer = System(tmp_path).read(MODEL)
    assert answer.value is None
    assert answer.refusal is Refusal.ABSENT


def test_dot_dot_stops_at_the_root(tmp_path: Path) -> None:
    put(tmp_path, "/etc/inside", b"Inside\0")
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").symlink_to("../../../../../etc/inside")
    assert System(tmp_path).strings(MODEL).value == ["Inside"]


def test_a_loop_of_links_is_told(tmp_path: Path) -> None:
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").symlink_to("model")
    assert System(tmp_path).read(MODEL).refusal is Refusal.LOOP


def test_a_fifo_does_not_block_and_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    os.mkfifo(tmp_path / "proc/device-tree/model")
    started = time.monotonic()
    answer = System(tmp_path).read(MODEL)
    assert (answer.refusal, answer.detail) == (Refusal.NOT_A_FILE, "fifo")
    assert time.monotonic() - started < 5


def test_a_directory_in_place_of_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / MODEL[1:]).mkdir(parents=True)
    assert System(tmp_path).read(MODEL).refusal is Refusal.NOT_A_FILE


def test_a_large_file_costs_its_limit_and_no_more(tmp_path: Path) -> None:
    asked: list[int] = []

    def count(path: str, size: int) -> bytes:
        asked.append(size)
        return b"y" * size

    put(tmp_path, MODEL)
    answer = System(tmp_path, read_file=count).read(MODEL, limit=1000)
    assert answer.refusal is Refusal.TOO_LARGE
    assert asked == [1001]


def test_a_sparse_file_of_100_mib_is_refused_at_once(tmp_path: Path) -> None:
    with put(tmp_path, MODEL).open("r+b") as file:
        file.truncate(100 * 1024 * 1024)
    assert System(tmp_path).text(MODEL).refusal is Refusal.TOO_LARGE


def test_a_read_that_hangs_costs_its_time_limit_and_the_next_one_works(tmp_path: Path) -> None:
    put(tmp_path, MODEL)
    put(tmp_path, "/proc/meminfo", b"MemTotal: 1 kB\n")
    released, returned = threading.Event(), threading.Event()

    def slow(path: str, size: int) -> bytes:
        if path.endswith("model"):
            released.wait(120)
            returned.set()
        return Path(path).read_bytes()

    system = System(tmp_path, read_file=slow, file_seconds=0.2)
    try:
        assert system.read(MODEL).refusal is Refusal.TIMED_OUT
        system._file_seconds = 60  # how fast a good read is answered on a busy machine is not the point
        assert system.text("/proc/meminfo").value == "MemTotal: 1 kB"
        assert not returned.is_set()
    finally:
        released.set()


def test_patience_runs_out_for_a_tree_full_of_hanging_files(tmp_path: Path) -> None:
    names = [f"/sys/class/regulator/regulator.{number}/name" for number in range(12)]
    for name in names:
        put(tmp_path, name)

    released = threading.Event()

    def never(path: str, size: int) -> bytes:
        released.wait(120)
        return b""

    system = System(tmp_path, read_file=never, file_seconds=0.4)
    system._patience = 1.0
    answers = [system.read(name) for name in names]
    released.set()
    assert {answer.refusal for answer in answers} == {Refusal.TIMED_OUT}
    assert [answer.detail for answer in answers[:2]] == ["0.4 s", "0.4 s"]
    assert {answer.detail for answer in answers[3:]} == {"0.05 s"}


@pytest.mark.parametrize(
    ("code", "refusal"),
    [
        (errno.EACCES, Refusal.PERMISSION),
        (errno.EPERM, Refusal.PERMISSION),
        (errno.EIO, Refusal.FAILED),
        (errno.EINVAL, Refusal.FAILED),
        (errno.ENODEV, Refusal.ABSENT),
        (errno.ENOENT, Refusal.ABSENT),
    ],
)
def test_errors_are_values_that_tell_why(tmp_path: Path, code: int, refusal: Refusal) -> None:
    put(tmp_path, MODEL)

    def fail(path: str, size: int) -> bytes:
        raise OSError(code, os.strerror(code))

    answer = System(tmp_path, read_file=fail).read(MODEL)
    assert answer.refusal is refusal
    assert answer.reason.startswith(f"{MODEL}: {refusal.value}")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads files of mode 000")
def test_a_file_of_mode_000_is_refused_by_permission(tmp_path: Path) -> None:
    put(tmp_path, MODEL).chmod(0)
    answer = System(tmp_path).read(MODEL)
    assert answer.needs_root


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/dev/mem", "/proc/1/environ", "/sys/kernel/debug/rknpu/freq", "/home/x"]
)
def test_a_path_that_is_not_listed_is_a_programming_error(tmp_path: Path, path: str) -> None:
    with pytest.raises(PathNotListed):
        System(tmp_path).read(path)


@pytest.mark.parametrize("leaf", ["freq", "volt", "reset", "delayms"])
def test_a_listed_link_to_a_file_that_wakes_the_npu_is_not_followed(tmp_path: Path, leaf: str) -> None:
    put(tmp_path, f"/sys/kernel/debug/rknpu/{leaf}", b"1000000000\n")
    link = tmp_path / "sys/class/devfreq/fdab0000.npu/cur_freq"
    link.parent.mkdir(parents=True)
    link.symlink_to(f"/sys/kernel/debug/rknpu/{leaf}")
    assert System(tmp_path).read("/sys/class/devfreq/fdab0000.npu/cur_freq").refusal is Refusal.PERMISSION


def test_nothing_on_the_list_wakes_the_npu_or_is_a_device() -> None:
    for _, globs in paths.ALLOWED:
        for glob in globs:
            concrete = glob.replace("*", "x")
            assert not concrete.startswith("/dev/") or not paths.may_read(concrete)
            assert concrete not in paths.NEVER
    for glob in paths.NEVER:
        assert not paths.may_read(glob.replace("*", "fdab0000"))


def test_control_characters_are_not_text(tmp_path: Path) -> None:
    put(tmp_path, "/proc/meminfo", b"\x01\x02\x03\xff")
    assert System(tmp_path).text("/proc/meminfo").refusal is Refusal.NOT_TEXT


def test_an_answer_is_asked_for_once(tmp_path: Path) -> None:
    file = put(tmp_path, MODEL, b"one\0")
    system = System(tmp_path)
    assert system.strings(MODEL).value == ["one"]
    file.write_bytes(b"two\0")
    assert system.strings(MODEL).value == ["one"]


def test_a_picture_knows_nothing_of_the_machine_that_looks_at_it(tmp_path: Path) -> None:
    live = System(tmp_path).live
    assert (live.uid, live.machine, live.pid, dict(live.environ)) == (None, None, None, {})


@pytest.mark.parametrize(
    "text", ["", "[]", "null", '{"nodes": 3, "links": [1], "live": "x", "names": {"/proc": 7}}', "[" * 100000]
)
def test_a_damaged_manifest_counts_as_absent(tmp_path: Path, text: str) -> None:
    put(tmp_path, "/.rknpu/manifest.json", text.encode())
    put(tmp_path, MODEL, b"Board\0")
    system = System(tmp_path)
    assert system.strings(MODEL).value == ["Board"]
    assert "model" in (system.names("/proc/device-tree").value or [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None)
@given(
    data=st.dictionaries(
        st.sampled_from(["nodes", "links", "names", "refused", "accessible", "holders", "second", "live", "flat"]),
        JSON
        | st.dictionaries(st.sampled_from(["/dev/dri/renderD129", "read /proc/meminfo", "/proc", "drm", "uid"]), JSON),
    )
)
@example(data={"refused": {"read /proc/meminfo": [[], None]}})
def test_any_manifest_gives_answers_and_no_exception(tmp_path: Path, data: object) -> None:
    put(tmp_path, "/.rknpu/manifest.json", json.dumps(data).encode())
    system = System(tmp_path)
    system.node("/dev/dri/renderD129")
    system.link("/dev/dri/renderD129")
    system.read("/proc/meminfo")
    system.names("/proc")
    system.names("/dev/dri")
    system.drm_version("/dev/dri/renderD129")
    system.holders("/proc/12/fd", {"/dev/dri/renderD129": (226, 129)})


@pytest.mark.parametrize(
    "row", [None, {}, {"path": ["/x"]}, {"path": "/x", "version": 2.3}, {"path": "/x", "elf_machine": []}]
)
def test_a_recorded_library_that_is_none_is_left_out(tmp_path: Path, row: object) -> None:
    good = {"path": "/usr/lib/librknnrt.so", "version": "2.3.2", "taken": True, "elf_machine": "aarch64"}
    put(tmp_path, "/.rknpu/manifest.json", json.dumps({"live": {"libraries": [row, good]}}).encode())
    assert System(tmp_path).live.libraries == [good]


def test_access_follows_owner_group_and_others(tmp_path: Path) -> None:
    def allowed(mode: int, uid: int, gids: list[int]) -> bool | None:
        manifest = {
            "nodes": {"/dev/dri/renderD129": ["char", mode, 0, 109, 226, 129]},
            "live": {"uid": uid, "gids": gids},
        }
        put(tmp_path, "/.rknpu/manifest.json", json.dumps(manifest).encode())
        node = System(tmp_path).node("/dev/dri/renderD129").value
        assert node is not None
        return node.accessible

    assert allowed(0o660, 1000, [109]) is True
    assert allowed(0o660, 1000, [44]) is False
    assert allowed(0o666, 1000, []) is True
    assert allowed(0o600, 1000, [109]) is False
    assert allowed(0o600, 0, []) is True
    assert allowed(0o640, 1000, [109]) is False
