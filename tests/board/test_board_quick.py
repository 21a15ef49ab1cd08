# SPDX-License-Identifier: Apache-2.0
"""Level quick writes nothing, wakes nothing, asks for no rights, and is quick."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes import paths
from probes.facts import collect
from probes.findings import judge
from probes.live import DRM_IOCTL_VERSION
from probes.system import System
from tests.board import samples
from tests.board.expected import BOARDS
from tests.board.tree import build

CHECKOUT = Path(__file__).resolve().parents[2]
PROGRAM = (
    "import sys; from probes.system import System; from probes.facts import collect; from probes.findings import judge;"
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
    command = [strace, "-f", "-qq", "-e", f"trace={CALLS}", "-o", str(log), sys.executable, "-c", PROGRAM, root]
    done = subprocess.run(command, cwd=CHECKOUT, env=env, capture_output=True, text=True, timeout=120, check=False)
    if "ptrace" in done.stderr and done.returncode:
        pytest.skip("this sandbox does not allow ptrace")
    assert done.returncode == 0, done.stderr
    return log.read_text(encoding="utf-8", errors="replace").splitlines()


@pytest.mark.parametrize("live", [False, True], ids=["fake root", "this machine"])
def test_nothing_is_written_and_no_device_is_opened(tmp_path: Path, live: bool) -> None:
    root = "/" if live else str(build(tmp_path / "root", samples.ORANGEPI5_PRO_BSP))
    lines = traced(tmp_path, root)
    opened = [match.groups() for line in lines if (match := OPENED.search(line))]
    assert len(opened) > 50
    assert not [row for row in opened if re.search(r"O_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)", row[1])]
    names = [name if live else name.removeprefix(root) for name, flags in opened if "O_DIRECTORY" not in flags]
    assert not [name for name in names if name.startswith("/dev/") and name not in ("/dev/null", "/dev/urandom")]
    assert not [name for name in names if paths.never_read(name)]
    calls = {match.group(1) for line in lines if (match := re.match(r"\d+\s+(\w+)\(", line))}
    assert calls <= {"open", "openat", "openat2", "ioctl"}, calls
    asked = [line for line in lines if "ioctl(" in line]
    # FIOCLEX, TCGETS and the like are Python's own, on files of its own.
    assert not [line for line in asked if not re.search(r"FIOCLEX|TCGETS|FIONBIO|TIOCGWINSZ", line)], asked


def test_every_file_under_a_fake_root_that_is_opened_is_on_the_list(tmp_path: Path) -> None:
    root = str(build(tmp_path / "root", samples.ROCK5B_61))
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
    freq = f"{root}/sys/kernel/debug/rknpu/freq"
    assert freq not in inside


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
