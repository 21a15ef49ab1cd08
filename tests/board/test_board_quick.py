# SPDX-License-Identifier: Apache-2.0
"""Level quick writes nothing, wakes nothing, asks for no rights, and is quick."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from probes import live, paths
from probes.facts import FactSheet, collect
from probes.findings import judge
from probes.live import DRM_IOCTL_VERSION
from probes.system import System
from tests.board import samples
from tests.board.expected import BOARDS
from tests.board.tree import build

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = (
    "import sys; sys.path.insert(0, '.');"
    "from probes.system import System; from probes.facts import collect; from probes.findings import judge;"
    "judge(collect(System(sys.argv[1]), lambda event: None))"
)
CALLS = "open,openat,openat2,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,chmod,fchmodat,chown"
CALLS += ",fchownat,link,linkat,symlink,symlinkat,mknod,mknodat,truncate,ftruncate,ioctl,mount,init_module,finit_module"
OPENED = re.compile(r'open(?:at)?2?\((?:AT_FDCWD|\d+)?,? ?"([^"]*)", ([A-Z_|0-9x{}=]+)')


def traced(tmp_path: Path, root: str) -> list[str]:
    """System calls of one look at ``root``."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    log = tmp_path / "trace"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [
        strace,
        "-f",
        "-qq",
        "-e",
        f"trace={CALLS}",
        "-o",
        str(log),
        sys.executable,
        "-I",
        "-S",
        "-B",
        "-c",
        PROGRAM,
        root,
    ]
    done = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=120, check=False)
    if "ptrace" in done.stderr and done.returncode:
        pytest.skip("this sandbox does not allow ptrace")
    assert done.returncode == 0, done.stderr
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


@pytest.mark.parametrize("real", [False, True], ids=["fake root", "this machine"])
def test_nothing_is_written_and_no_device_is_opened(tmp_path: Path, real: bool) -> None:
    root = "/" if real else str(build(tmp_path / "root", samples.ORANGEPI5_PRO_BSP))
    lines = traced(tmp_path, root)
    opened = [match.groups() for line in lines if (match := OPENED.search(line))]
    assert len(opened) > 50
    assert not [row for row in opened if re.search(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)", row[1])]
    names = [name if real else name.removeprefix(root) for name, flags in opened if "O_DIRECTORY" not in flags]
    assert not [name for name in names if name.startswith("/dev/") and name not in ("/dev/null", "/dev/urandom")]
    assert not [name for name in names if paths.never_read(name)]
    calls = {match.group(1) for line in lines if (match := re.match(r"\d+\s+(\w+)\(", line))}
    assert calls <= {"open", "openat", "openat2", "ioctl"}, calls
    asked = [line for line in lines if "ioctl(" in line]
    # FIOCLEX, TCGETS and the like are Python's own, on files of its own.
    assert not [line for line in asked if not re.search(r"FIOCLEX|TCGETS|FIONBIO|TIOCGWINSZ", line)], asked


def test_every_file_under_a_fake_root_that_is_opened_is_on_the_list(tmp_path: Path) -> None:
    wakes = "\n".join(f"/sys/kernel/debug/rknpu/{leaf} = 1000000000" for leaf in ("freq", "volt", "reset", "delayms"))
    root = str(build(tmp_path / "root", samples.ROCK5B_61, wakes))
    system = System(root)
    collect(system, lambda event: None)
    for kind, path in system.answers:
        if kind in ("read", "again"):
            assert paths.may_read(path)
        elif kind != "klog":
            assert paths.may_look(path)
    lines = traced(tmp_path, root)
    inside = {match.group(1) for line in lines if (match := OPENED.search(line)) and match.group(1).startswith(root)}
    assert len(inside) > 30
    files = [name for name in inside if Path(name).is_file()]
    assert not [name for name in files if paths.never_read(name.removeprefix(root))]


def test_the_only_call_on_a_device_is_drm_version(tmp_path: Path) -> None:
    text = (CHECKOUT / "probes" / "live.py").read_text(encoding="utf-8")
    assert DRM_IOCTL_VERSION == 0xC0406400
    assert text.count("fcntl.ioctl(") == 1
    for file in (CHECKOUT / "probes").rglob("*.py"):
        if file.name != "live.py":
            assert "ioctl(" not in file.read_text(encoding="utf-8").replace("_ioctl(", ""), file


def test_the_drm_call_is_made_only_where_sysfs_leaves_it_open(tmp_path: Path) -> None:
    def asked(table: str, name: str) -> list[str]:
        system = System(build(tmp_path / name, table))
        collect(system, lambda event: None)
        return [path for kind, path in system.answers if kind == "drm"]

    assert asked(samples.ROCK5B_61, "vendor") == ["/dev/dri/renderD129"]
    assert asked(samples.ROCKET, "rocket") == []
    closed = "live uid=1001 gids=1001 machine=aarch64"
    assert asked(samples.ROCK5B_61 + "\n" + closed, "closed") == []


def test_a_read_only_tree_gives_the_same_report(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK4D)
    before = {path: path.lstat().st_mtime_ns for path in root.rglob("*")}
    collect(System(root), lambda event: None)
    assert {path: path.lstat().st_mtime_ns for path in root.rglob("*")} == before


@pytest.mark.parametrize("board", BOARDS[:6], ids=lambda board: board.name)
def test_facts_and_findings_take_less_than_a_second_of_processor_time(board: object, tmp_path: Path) -> None:
    root = build(tmp_path / "root", getattr(board, "table"))  # noqa: B009  (typed by the table module alone)
    started = time.process_time()
    judge(collect(System(root), lambda event: None))
    assert time.process_time() - started < 1.0


def test_the_whole_command_takes_less_than_a_second_of_processor_time_beyond_python(tmp_path: Path) -> None:
    import resource  # noqa: PLC0415

    root = build(tmp_path / "root", samples.ROCK5B_61)
    command = [sys.executable, "-m", "probes", "--level", "quick", "--root", str(root), "--output", "-"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    assert "RK3588" in done.stdout
    assert (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime) < 2.0


def test_the_environment_half_needs_nothing_but_the_standard_library() -> None:
    program = (
        "import sys; sys.path.insert(0, '.');"
        "from probes.facts import collect; from probes.findings import judge; from probes.system import System;"
        "import probes.capture, probes.privilege, reports.paste, reports.redact;"
        "print(len(collect(System('/'), lambda event: None)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 100


class DrmVersionStruct(ctypes.Structure):
    """struct drm_version of the kernel's uapi, laid out by the C compiler's rules."""

    _fields_ = (
        *(("major", ctypes.c_int), ("minor", ctypes.c_int), ("patch", ctypes.c_int)),
        *(("name_len", ctypes.c_size_t), ("name", ctypes.c_void_p), ("date_len", ctypes.c_size_t)),
        *(("date", ctypes.c_void_p), ("desc_len", ctypes.c_size_t), ("desc", ctypes.c_void_p)),
    )


@pytest.mark.parametrize(("name", "date"), [(b"rknpu", b"20240828"), (b"rocket", b""), (b"x" * 255, b"1" * 255)])
def test_the_drm_call_is_asked_and_answered_by_the_kernels_layout(
    name: bytes, date: bytes, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def kernel(handle: int, number: int, request: bytearray, mutate: bool) -> int:
        assert mutate
        assert number & 0xFF == 0 and (number >> 8) & 0xFF == ord("d") and number >> 30 == 3
        assert (number >> 16) & 0x3FFF == ctypes.sizeof(DrmVersionStruct) == len(request)
        row = DrmVersionStruct.from_buffer(request)
        row.major, row.minor, row.patch = 0, 9, 8
        for place, room, text in ((row.name, row.name_len, name), (row.date, row.date_len, date)):
            ctypes.memmove(place, text, min(room, len(text)))
        return 0

    monkeypatch.setattr("probes.live.fcntl.ioctl", kernel)
    node = tmp_path / "node"
    node.write_bytes(b"")
    found = live.drm_version(str(node))
    assert found is not None
    assert (found.name, found.version, found.date) == (name.decode(), (0, 9, 8), date.decode())
    assert live.DrmVersion.from_json(found.as_json()) == found


def test_a_node_that_is_no_drm_node_gives_no_version(tmp_path: Path) -> None:
    assert live.drm_version("/dev/null") is None
    assert live.drm_version(str(tmp_path / "absent")) is None


def test_the_kernel_log_is_text_or_a_reason() -> None:
    text, reason = live.read_klog()
    assert (text is None) == bool(reason)


def test_a_holder_is_found_by_device_number_whatever_the_node_is_called_there() -> None:
    system = System("/")
    with Path("/dev/null").open("rb"):
        answer = system.holders(f"/proc/{os.getpid()}/fd", {"/renamed/null": (1, 3)})
    assert answer.value is not None
    assert answer.value[0] == "/renamed/null"
    other = System("/").holders(f"/proc/{os.getpid()}/fd", {"/dev/dri/renderD129": (226, 129)})
    assert other.value is not None and other.value[0] is None


def test_a_process_that_ended_meanwhile_is_no_error() -> None:
    assert System("/").holders("/proc/4194304999/fd", {}).value is None


def test_the_machine_itself_can_be_looked_at_twice_at_the_same_time() -> None:
    sheets: list[FactSheet] = []
    threads = [
        threading.Thread(target=lambda: sheets.append(collect(System("/"), lambda event: None))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(sheets) == 3
    assert len({sheet.value("kernel.release") for sheet in sheets}) == 1
