# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of a table is a line of a file on the board)
"""Reports for others hold nothing personal, the short block fits an issue, and a capture replays to the same report."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.capture import CaptureError, capture, opened, unpack
from probes.facts import FactSheet, collect
from probes.findings import judge
from probes.privilege import privilege_note
from probes.system import System
from reports.event_log import EventLogSink
from reports.paste import MAX_LINES, paste
from reports.redact import COMMON, Names, names_here, names_of, redact, redact_text
from tests.board import samples
from tests.board.expected import BOARDS, Board
from tests.board.scenarios import SCENARIOS
from tests.board.tree import build

CHECKOUT = Path(__file__).resolve().parents[2]
NAMES = Names(hosts=("rumpel-pi",), users=("stilzchen",), serials=("d00dfeed12345678",))
SECRETS = (
    "rumpel-pi",
    "stilzchen",
    "d00dfeed12345678",
    "aa:bb:cc:dd:ee:ff",
    "0123456789abcdef0123456789abcdef",
    "c0ffee00-1111",
)
PERSONAL = """
/proc/cpuinfo = processor\\t: 0\\nCPU implementer\\t: 0x41\\nCPU variant\\t: 0x2\\nCPU part\\t: 0xd05\\nSerial\\t\\t: d00dfeed12345678
/proc/cmdline = root=UUID=c0ffee00-1111-2222-3333-444444444444 androidboot.serialno=d00dfeed12345678 cma=64M user=stilzchen
/etc/group = root:x:0:\\nvideo:x:44:stilzchen\\nrender:x:109:stilzchen\\nstilzchen:x:1000:
/etc/os-release = PRETTY_NAME="Image of rumpel-pi"\\nID=debian
/etc/hostname = rumpel-pi
/etc/machine-id = 0123456789abcdef0123456789abcdef
/proc/device-tree/serial-number = d00dfeed12345678\\0
/proc/1/cgroup = 0::/user.slice/user-1000.slice/stilzchen
/sys/bus/nvmem/devices/rockchip-otp0/nvmem hex 52 4b 35 88 12 fe 21 41 00 53 45 43 52 45 54 11 22 33
holder 4711 stilzchen /dev/dri/renderD129
env LD_LIBRARY_PATH=/home/stilzchen/lib:/usr/lib
dmesg r8169 0002:21:00.0 eth0: RTL8125B, aa:bb:cc:dd:ee:ff, XID 641, IRQ 90
dmesg RKNPU fdab0000.npu: RKNPU: job timeout on rumpel-pi, user stilzchen, /home/stilzchen/model.rkllm
dmesg rockchip-cpuinfo cpuinfo: Serial : d00dfeed12345678
"""


def document(sheet: FactSheet, **more: Any) -> dict[str, Any]:
    report: dict[str, Any] = {
        "simulated": False,
        "tool": {"name": "rknpu-kit", "version": "0.1.0", "git_commit": "0123456789ab"},
        "run": {"level": "quick", "started_at": "2026-01-01T00:00:00Z"},
        "facts": {key: fact.as_json() for key, fact in sheet.items()},
        "measurements": [],
        "findings": [finding.as_json() for finding in judge(sheet)],
        "steps": [],
    }
    return {**report, **more}


def look(root: Path) -> FactSheet:
    return collect(System(root), lambda event: None)


def leaks(text: str) -> list[str]:
    return [secret for secret in SECRETS if secret in text]


# ---- redaction ------------------------------------------------------------------------------------------------------


def test_a_report_of_a_talkative_board_holds_nothing_personal(tmp_path: Path) -> None:
    report = document(look(build(tmp_path / "root", samples.ROCK5B_61, PERSONAL)))
    assert leaks(json.dumps(report)), "the tree must hold what is to be taken out"
    assert leaks(json.dumps(redact(report, NAMES))) == []


def test_redaction_without_names_still_takes_every_shape() -> None:
    text = (
        "eth0 aa:bb:cc:dd:ee:ff AA-BB-CC-DD-EE-FF root=UUID=c0ffee00-1111-2222-3333-444444444444 "
        "0123456789abcdef0123456789abcdef /home/stilzchen/x /media/stilzchen/disk Serial\t\t: d00dfeed12345678 "
        "androidboot.serialno=d00dfeed12345678 hostname=rumpel-pi mail me@rumpel-pi.example.org"
    )
    clean = redact_text(text, Names())
    assert leaks(clean) == []
    assert clean.count("<mac>") == 2
    assert "/home/<user>/x" in clean
    assert "<serial>" in clean and "<uuid>" in clean and "<id>" in clean and "<host>" in clean and "<address>" in clean


@pytest.mark.parametrize(
    "text",
    [
        "librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        "ddr-v1.16-9fffbe1e78,bl31-v1.45,uboot-2017.09",
        "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "GICv3 142 Level fdab9000.iommu, fdab0000.npu",
        "/sys/class/devfreq/fdab0000.npu/cur_freq: absent",
        "rockchip,rk3588-orangepi-5-plus",
        "6.1.115-vendor-rk35xx",
        "0x00000000414fd0b0",
        "12:34:56",
        "echo performance | sudo tee /sys/devices/system/cpu/cpufreq/policy*/scaling_governor",
    ],
)
def test_what_a_report_is_for_is_left_alone(text: str) -> None:
    assert redact_text(text, NAMES) == text


def test_a_host_named_like_its_board_does_not_spoil_the_board(tmp_path: Path) -> None:
    report = document(look(build(tmp_path / "root", samples.ROCK5B_61)), note="seen on rock-5b")
    clean = redact(report, Names(hosts=("rock-5b", "npu"), users=("radxa",)))
    assert clean["facts"]["board.compatible"]["value"] == ["radxa,rock-5b", "rockchip,rk3588"]
    assert clean["note"] == "seen on <host>"
    assert clean["facts"]["npu.stack"] == report["facts"]["npu.stack"]


@settings(max_examples=200, deadline=None)
@given(
    user=st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=3, max_size=12).filter(
        lambda name: name.strip("-_") == name
    ),
    before=st.text(" /=:,\"'", max_size=3),
    after=st.text(" /=:,\"'", max_size=3),
)
def test_a_name_never_survives_as_a_word_and_redaction_is_done_once(user: str, before: str, after: str) -> None:
    names = Names(users=(user,))
    once = redact({"deep": [{"text": f"x {before}{user}{after} y"}]}, names)
    kept = once["deep"][0]["text"]
    assert user in COMMON or user not in kept.replace("<user>", " ").split()
    assert redact(once, names) == once


@settings(max_examples=100, deadline=None)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=30),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=20,
    )
)
def test_any_document_may_be_redacted_and_pasted(value: Any) -> None:
    report = dict.fromkeys(("facts", "findings", "measurements", "tool", "run", "simulated"), value)
    redact(report, NAMES)
    check_block(paste(report, NAMES))


# ---- the short block ------------------------------------------------------------------------------------------------


def check_block(block: str) -> None:
    lines = block.split("\n")
    assert lines.pop() == ""
    assert 1 <= len(lines) <= MAX_LINES == 60
    assert block.isascii()
    assert all(line.isprintable() or line == "" for line in lines)


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_the_block_of_a_board_fits_an_issue_and_names_what_matters(board: Board, tmp_path: Path) -> None:
    block = paste(document(look(build(tmp_path / "root", board.table))), NAMES)
    check_block(block)
    assert board.soc in block
    assert board.stack in block
    assert board.node in block
    if board.first != "nothing wrong":
        assert board.first in block


def test_the_block_says_simulated_and_shows_an_invalid_number(tmp_path: Path) -> None:
    row = {
        **{"name": "gemm_rate", "median": 0.69123, "unit": "tops", "verdict": "passed", "checked": "exact"},
        **{"parameters": {"M": 4096}, "validity": {"valid": False, "reasons": ["throttled"]}},
    }
    block = paste(
        document(look(build(tmp_path / "root", samples.ROCK4D)), simulated=True, measurements=[row] * 40), NAMES
    )
    check_block(block)
    assert "SIMULATED" in block.splitlines()[0]
    assert "gemm_rate 0.6912 tops passed/exact INVALID M=4096" in block


def test_the_block_of_a_report_that_kept_everything_is_redacted_all_the_same(tmp_path: Path) -> None:
    block = paste(document(look(build(tmp_path / "root", samples.ROCK5B_61, PERSONAL))), NAMES)
    check_block(block)
    assert leaks(block) == []


def test_other_alphabets_become_ascii() -> None:
    block = paste({"facts": {"os.name": {"value": "Ubuntu \u4e2d\u6587 Caf\u00e9\x1b[31m"}}}, NAMES)
    check_block(block)
    assert "Cafe" in block


# ---- capture and replay ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(0, len(SCENARIOS), 3))
def test_a_capture_replays_to_the_same_facts_and_findings(number: int, tmp_path: Path) -> None:
    root = build(tmp_path / "root", *SCENARIOS[number].tables)
    capture(System(root), tmp_path / "board.tar", names=NAMES)
    original = redact(document(look(root)), NAMES)
    with opened(tmp_path / "board.tar") as system:
        sheet = collect(system, lambda event: None)
    replayed = redact(document(sheet), NAMES)
    assert replayed["facts"] == original["facts"]
    assert replayed["findings"] == original["findings"]


def test_a_capture_of_a_talkative_board_replays_and_holds_nothing_personal(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61, PERSONAL)
    capture(System(root), tmp_path / "board.tar", names=NAMES)
    data = (tmp_path / "board.tar").read_bytes()
    assert leaks(data.decode("latin-1")) == []
    assert b"SECRET" not in data
    with opened(tmp_path / "board.tar") as system:
        replayed = redact(document(collect(system, lambda event: None)), NAMES)
    original = redact(document(look(root)), NAMES)
    assert replayed["facts"] == original["facts"]


PASSWD = "/etc/passwd = root:x:0:0::/root:/bin/sh\\nstilzchen:x:1000:1000::/home/stilzchen:/bin/sh"
BLACKLIST = "/etc/modprobe.d/stilzchen.conf = blacklist rocket"


def test_the_names_of_a_pictured_board_come_from_its_own_files(tmp_path: Path) -> None:
    names = names_of(build(tmp_path / "root", samples.ROCK5B_61, PERSONAL, PASSWD))
    assert "rumpel-pi" in names.hosts and "stilzchen" in names.users and "root" not in names.users
    assert {"d00dfeed12345678", "0123456789abcdef0123456789abcdef"} <= set(names.serials)
    assert set(names_here().hosts) <= set(names.hosts)
    assert names_of(Path("/")) == names_here()


def test_a_picture_that_hides_traps_where_names_stand_is_read_without_waiting(tmp_path: Path) -> None:
    for leaf in ("etc/hostname", "etc/machine-id"):
        (tmp_path / leaf).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / leaf)
    (tmp_path / "etc/passwd").symlink_to("/dev/zero")
    (tmp_path / "proc/device-tree/serial-number").mkdir(parents=True)
    assert names_of(tmp_path) == names_here()


def test_a_capture_and_an_event_log_of_a_picture_hold_no_name_of_the_pictured_board(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61, PERSONAL, PASSWD, BLACKLIST)
    capture(System(root), tmp_path / "board.tar")
    with tarfile.open(tmp_path / "board.tar") as tar:
        assert leaks(" ".join(tar.getnames())) == []
        found = [name for name in tar.getnames() if leaks(tar.extractfile(name).read().decode("latin-1"))]  # type: ignore[union-attr]
    assert found == []
    with opened(tmp_path / "board.tar") as system:
        replayed = collect(system, lambda event: None)
    assert replayed.value("npu.modprobe_blacklist") == ["/etc/modprobe.d/<user>.conf: blacklist rocket"]
    log = EventLogSink(tmp_path / "log", names=names_of(root))
    for fact in look(root).values():
        log.handle(fact, 0.0)
    log.close()
    assert leaks((tmp_path / "log").read_text()) == []


@pytest.mark.parametrize("how", [["--json"], ["--paste"], ["--paste", "--full"], []])
def test_the_command_redacts_a_pictured_board_by_its_own_names(how: list[str], tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61, PERSONAL, PASSWD, BLACKLIST)
    report = tmp_path / "out.json"
    command = [sys.executable, "-m", "probes", "--level", "quick", "--root", str(root), "--output", str(report), *how]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, 1) and "ROCK 5B" in done.stdout
    shown = [done.stdout] if "--full" in how else [done.stdout, *(path.read_text() for path in tmp_path.glob("out.*"))]
    assert [leak for text in shown for leak in leaks(text)] == []


def test_the_usual_users_of_vendor_images_do_not_spoil_a_report() -> None:
    text = "board.compatible = ['radxa,rock-5b', 'rockchip,rk3588']"
    assert redact_text(text, Names(users=("radxa", "rock", "pi", "orangepi"))) == text


def test_a_capture_holds_plain_files_alone_and_no_library(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61)
    done = capture(System(root), tmp_path / "board.tar", names=NAMES)
    with tarfile.open(tmp_path / "board.tar") as tar:
        members = tar.getmembers()
        names = tar.getnames()
    assert all(member.isreg() for member in members)
    assert len(members) == done.files
    assert not [name for name in names if ".so" in name]
    assert "/sys/kernel/debug/rknpu/load" in done.refused


def test_a_second_reading_is_captured_too(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ORANGEPI5_PLUS)
    second = root / ".rknpu/second/proc/interrupts"
    second.parent.mkdir(parents=True)
    second.write_text((root / "proc/interrupts").read_text().replace(" 3 0 0", " 9 0 0"), encoding="utf-8")
    manifest = json.loads((root / ".rknpu/manifest.json").read_text(encoding="utf-8"))
    (root / ".rknpu/manifest.json").write_text(
        json.dumps({**manifest, "second": ["/proc/interrupts"]}), encoding="utf-8"
    )
    assert look(root).value("npu.irq_delta") == 18
    capture(System(root), tmp_path / "board.tar", names=NAMES)
    with opened(tmp_path / "board.tar") as system:
        assert collect(system, lambda event: None).value("npu.irq_delta") == 18


def test_a_capture_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "board.tar").write_bytes(b"mine")
    with pytest.raises(CaptureError, match="exists"):
        capture(System(build(tmp_path / "root", samples.ROCK4D)), tmp_path / "board.tar", names=NAMES)
    assert (tmp_path / "board.tar").read_bytes() == b"mine"


def test_a_capture_that_cannot_be_finished_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(CaptureError, match="No space left"):
        capture(System(build(tmp_path / "root", samples.ROCK4D)), tmp_path / "board.tar", names=NAMES)
    assert not (tmp_path / "board.tar").exists()
    with pytest.raises(CaptureError, match="cannot be written"):
        capture(System(tmp_path / "root"), tmp_path / "no" / "such" / "board.tar", names=NAMES)


def crafted(place: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(place, "w") as tar:
        for member, data in members:
            member.size = len(data) if member.isreg() else 0
            tar.addfile(member, io.BytesIO(data))
    return place


MANIFEST = (tarfile.TarInfo("board/.rknpu/manifest.json"), b"{}")


@pytest.mark.parametrize("name", ["../evil", "board/../../evil", "/tmp/evil", "elsewhere/x", "board/a/../../../evil"])
def test_an_archive_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    archive = crafted(tmp_path / "evil.tar", MANIFEST, (tarfile.TarInfo(name), b"x"))
    with pytest.raises(CaptureError, match="leads out"):
        unpack(archive, tmp_path / "out")
    assert not list(tmp_path.rglob("evil"))


def test_links_and_devices_in_an_archive_are_left_out(tmp_path: Path) -> None:
    link, device = tarfile.TarInfo("board/proc/link"), tarfile.TarInfo("board/dev/mem")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    device.type = tarfile.CHRTYPE
    inside = tarfile.TarInfo("board/proc/link/passwd")
    root = unpack(crafted(tmp_path / "a.tar", MANIFEST, (link, b""), (device, b""), (inside, b"x")), tmp_path / "out")
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()) == [
        ".rknpu/manifest.json",
        "proc/link/passwd",
    ]
    assert not (root / "proc/link").is_symlink()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"not a tar",
        b"\x1f\x8b" + b"\0" * 50,
        gzip.compress(b"no tar"),
        gzip.compress(b"x" * 900)[:-9],
        os.urandom(2000),
    ],
)
def test_what_is_no_archive_is_told_in_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(CaptureError) as caught:
        unpack(tmp_path / "x.tar", tmp_path / "out")
    assert "\n" not in str(caught.value) and "python -m probes capture" in str(caught.value)


def test_a_folder_or_a_device_is_no_archive(tmp_path: Path) -> None:
    for place in (tmp_path, Path("/dev/zero")):
        with pytest.raises(CaptureError, match="is no file"):
            unpack(place, tmp_path / "out")


def test_a_gzipped_capture_opens_and_one_that_swells_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture(System(build(tmp_path / "root", samples.ROCK4D)), tmp_path / "b.tar", names=NAMES)
    (tmp_path / "b.tar.gz").write_bytes(gzip.compress((tmp_path / "b.tar").read_bytes()))
    assert look(unpack(tmp_path / "b.tar.gz", tmp_path / "out")).value("soc.name") == "RK3576"
    monkeypatch.setattr("probes.capture.MAX_TOTAL_BYTES", 1 << 20)
    (tmp_path / "bomb.tar.gz").write_bytes(gzip.compress(bytes(3 << 20)))
    with pytest.raises(CaptureError, match="too large"):
        unpack(tmp_path / "bomb.tar.gz", tmp_path / "other")


def test_two_captures_are_never_mixed_in_one_folder(tmp_path: Path) -> None:
    for name, table in (("a", samples.ROCK4D), ("b", samples.ORANGEPI5_PLUS)):
        capture(System(build(tmp_path / name, table)), tmp_path / f"{name}.tar", names=NAMES)
    unpack(tmp_path / "a.tar", tmp_path / "out")
    with pytest.raises(CaptureError, match="exists already"):
        unpack(tmp_path / "b.tar", tmp_path / "out")
    assert look(tmp_path / "out" / "board").value("soc.name") == "RK3576"


def test_the_command_captures_and_unpacks(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK4D)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "probes", "capture", *arguments]
        return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)

    archive = str(tmp_path / "b.tar")
    assert run("--root", str(root), archive).returncode == 0
    again = run("--root", str(root), archive)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)
    assert run("--unpack", str(tmp_path / "out"), archive).returncode == 0
    assert look(tmp_path / "out" / "board").value("soc.name") == "RK3576"


# ---- the privilege note ---------------------------------------------------------------------------------------------


def test_the_note_names_what_root_would_add(tmp_path: Path) -> None:
    system = System(build(tmp_path / "root", samples.ROCK5B_61))
    note = privilege_note(system, collect(system, lambda event: None))
    assert "npu.load_percent" in note.facts
    assert "/sys/kernel/debug/rknpu/load" in note.paths
    assert "as root" in note.text and "sudo" not in note.text
    assert not note.as_root


def test_the_note_of_root_says_that_nothing_is_missing(tmp_path: Path) -> None:
    system = System(build(tmp_path / "root", samples.ORANGEPI5_PRO_BSP))
    note = privilege_note(system, collect(system, lambda event: None))
    assert (note.facts, note.as_root) == ((), True)
    assert "root would add no fact" in note.text


def test_a_fact_closed_to_root_is_not_promised_to_root(tmp_path: Path) -> None:
    closed = "live uid=0 gids=0 machine=aarch64"
    system = System(build(tmp_path / "root", samples.ROCK5B_61, closed))
    note = privilege_note(system, collect(system, lambda event: None))
    assert note.facts and note.text.startswith("Closed even to root")
    scan = "live uid=0 gids=0 machine=aarch64\nclosed /proc/812/fd\n/proc/812/comm = other"
    system = System(build(tmp_path / "scan", samples.ORANGEPI5_PRO_BSP, scan))
    note = privilege_note(system, collect(system, lambda event: None))
    assert note.text.startswith("Closed even to root") and "run the same command" not in note.text


def test_the_note_in_a_container_does_not_promise_too_much(tmp_path: Path) -> None:
    system = System(build(tmp_path / "root", samples.ROCK5B_61, "/.dockerenv dir"))
    note = privilege_note(system, collect(system, lambda event: None))
    assert "on the host" in note.text and "complete" not in note.text
