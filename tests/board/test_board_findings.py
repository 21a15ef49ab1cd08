# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of a table is a line of a file on the board)
"""Findings: ranked by cause, silent where facts are unknown, complete in their commands, and never shouting at harmless lines."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes import paths
from probes.facts import FactSheet, collect, soc_table, versions
from probes.facts.klog import sort_lines
from probes.findings import RULES, judge
from probes.live import Live, udev_properties
from probes.system import System
from reports.catalogue import board as catalogue
from reports.contract import Fact, Finding, Severity, by_cause
from tests.board import samples
from tests.board.expected import BOARDS
from tests.board.parts import RKNPU_UEVENT
from tests.board.scenarios import SCENARIOS
from tests.board.table import Known, found
from tests.board.tree import build, drm

CHECKOUT = Path(__file__).resolve().parents[2]
PUBLISHED = {
    "E": "001 002 010 011 012 013 014 020 021 030",
    "K": "001 002 003 004 005 006 007 008 009 010 011 012 013 014 015 016 020 021 022 023 024 025 026 090",
    "M": "010 011 012 013 014 015 016",
    "P": "010 011 012 013 014 015 016 017 018",
    "S": "001 004",
    "V": "001 002 003 004 005 006 007 008 009 010 011 012",
}
"""Codes that reports and issues may already hold. Add to the end of the line; take none away."""
BENIGN = [
    "RKNPU fdab0000.npu: can't request region for resource [mem 0xfdab0000-0xfdabffff]",
    "RKNPU fdab0000.npu: failed to find power_model node",
    "RKNPU fdab0000.npu: RKNPU: failed to initialize power model",
    "RKNPU fdab0000.npu: RKNPU: failed to get dynamic-coefficient",
    "rockchip,bus bus-npu: Failed to get leakage",
    "vdd_npu_s0: could not add device link fdab0000.npu: -EEXIST",
    "rknpu: loading out-of-tree module taints kernel.",
]


def look(root: Path, *tables: str) -> FactSheet:
    return collect(System(build(root, *tables)), lambda event: None)


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_every_code_of_the_catalogue_is_shown_by_some_tree(known: Known) -> None:
    tables = [(board.table,) for board in BOARDS] + [scenario.tables for scenario in SCENARIOS]
    seen: set[str] = set()
    for table in tables:
        seen.update(codes(known(table)[1]))
    assert {entry.code for entry in catalogue.ENTRIES} - seen == set()


def test_codes_are_well_formed_and_ranks_follow_their_class() -> None:
    for entry in catalogue.ENTRIES:
        assert re.fullmatch(r"NPU-[EKVMPS]\d{3}", entry.code)
        assert entry.fix and entry.why.endswith((".", "{status}", "{reason}"))
        assert (entry.rank >= 900) == (entry.severity is Severity.INFO), entry.code
        assert entry.what.isascii() and entry.why.isascii()


def test_an_empty_sheet_has_no_findings_of_weight() -> None:
    assert all(finding.severity is Severity.INFO for finding in judge(FactSheet()))


@pytest.fixture(scope="module")
def whole(known: Known) -> list[FactSheet]:
    tables = [(board.table,) for board in BOARDS] + [scenario.tables for scenario in SCENARIOS]
    return [known(table)[0] for table in tables]


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_rules_are_silent_where_facts_are_unknown(data: st.DataObject, whole: list[FactSheet]) -> None:
    sheet = data.draw(st.sampled_from(whole))
    lost = data.draw(st.sets(st.sampled_from(sorted(sheet))))
    facts = {key: replace(fact, value=None, reason="lost") if key in lost else fact for key, fact in sheet.items()}
    findings = judge(FactSheet(facts))
    assert findings == sorted(findings, key=by_cause)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_facts_that_are_lost_make_no_new_error(data: st.DataObject, whole: list[FactSheet]) -> None:
    """What is unknown accuses nobody: an error may vanish with its facts, none may appear."""
    sheet = data.draw(st.sampled_from(whole))
    before = {finding.code for finding in judge(sheet) if finding.severity is Severity.ERROR}
    reading = [
        key
        for key in sheet
        if not key.startswith(("npu.device", "board.", "soc.", "kernel.", "npu.dt", "npu.platform", "npu.def"))
    ]
    lost = data.draw(st.sets(st.sampled_from(sorted(reading))))
    facts = {key: replace(fact, value=None, reason="lost") if key in lost else fact for key, fact in sheet.items()}
    after = {finding.code for finding in judge(FactSheet(facts)) if finding.severity is Severity.ERROR}
    causes = {"NPU-K002", "NPU-K003", "NPU-K004", "NPU-K005", "NPU-K006", "NPU-K012", "NPU-K015", "NPU-K016"}
    assert after - before <= (causes if before & causes else {"NPU-K020"} if "NPU-M013" in before else set())


@settings(max_examples=60, deadline=None)
@given(lines=st.lists(st.sampled_from(BENIGN), min_size=1, max_size=20))
def test_harmless_lines_are_never_more_than_a_note(lines: list[str]) -> None:
    kept = sort_lines("\n".join(lines))
    assert kept["counts"] == {"benign": len(lines), "info": 0, "fault": 0}
    assert kept["faults"] == []
    facts = {
        f"klog.{key}": Fact(f"klog.{key}", kept[name], "log")
        for key, name in (("lines", "counts"), ("benign", "benign"))
    }
    findings = [finding for rule in RULES for finding in rule(FactSheet(facts))]
    assert {finding.severity for finding in findings} == {Severity.INFO}


@settings(max_examples=300, deadline=None)
@given(
    entries=st.lists(
        st.text("abcdefghijklmnopqrstuvwxyz0123456789,-", max_size=24)
        | st.from_regex(r"rockchip,r[kv][0-9]{4}[a-z]?", fullmatch=True),
        max_size=5,
    )
)
def test_only_a_tree_that_says_so_is_an_rk3588(entries: list[str]) -> None:
    name = soc_table.soc_of_compatible(entries)
    if name is not None and "3588" in name:
        assert any(entry.startswith("rockchip,rk3588") for entry in entries)


@pytest.mark.parametrize(("card", "render"), [(0, 128), (1, 130), (5, 140), (63, 191)])
def test_no_node_number_decides_anything(card: int, render: int, tmp_path: Path) -> None:
    usual = look(tmp_path / "usual", samples.ROCK5B_61)
    cut = "- /sys/class/drm/card1\n- /sys/class/drm/renderD129\n- /sys/devices/platform/fdab0000.npu/drm\n- /dev/dri"
    uevent = RKNPU_UEVENT.format(at="fdab0000", soc="rk3588")
    mali = drm("renderD129" if render != 129 else "renderD128", 129, "platform/fb000000.gpu", "DRIVER=panthor")
    sheet = look(
        tmp_path / "moved",
        samples.ROCK5B_61,
        cut,
        mali,
        drm(f"card{card}", card, "platform/fdab0000.npu", uevent, gid=44),
        drm(f"renderD{render}", render, "platform/fdab0000.npu", uevent),
    )
    assert sheet.value("npu.device_node") == f"/dev/dri/renderD{render}"
    moved = {key for key in sheet if sheet.value(key) != usual.value(key)}
    assert moved <= {"npu.device_node", "npu.device_nodes", "npu.driver_version_routes", "npu.platform_devices"}
    assert codes(judge(sheet)) == codes(judge(usual))


def test_an_empty_uevent_is_settled_by_the_drm_name(tmp_path: Path) -> None:
    virtual = samples.SPLIT_DKMS.replace("devices/rknpu", "devices/virtual-card").replace(
        "../../../rknpu", "../../../virtual-card"
    )
    assert look(tmp_path / "a", virtual).value("npu.device_node") == "/dev/dri/renderD129"
    assert (
        look(tmp_path / "b", virtual.replace("drm /dev/dri/renderD129 rknpu", "drm /dev/dri/renderD129 other")).value(
            "npu.device_node"
        )
        is None
    )


def first(root: Path, *tables: str) -> Finding:
    return found(root, tables)[1][0]


def test_the_fix_for_a_missing_group_is_the_exact_command(tmp_path: Path) -> None:
    finding = first(tmp_path / "a", samples.ROCK5B_61, "live uid=1001 gids=1001 machine=aarch64")
    assert finding.fix[0] == "sudo usermod -aG render $USER"


def test_the_fix_for_a_root_only_node_is_a_udev_rule(tmp_path: Path) -> None:
    finding = first(tmp_path / "a", samples.ROCK5B_61, "/dev/dri/renderD129 char 226:129 0600 0:0")
    assert 'SUBSYSTEM=="drm", KERNEL=="renderD*", GROUP="render", MODE="0660"' in finding.fix[0]
    closed = "/dev/rknpu char 10:122 0600 0:0\nlive uid=1000 gids=1000 machine=armv7l"
    assert 'SUBSYSTEM=="misc", KERNEL=="rknpu"' in first(tmp_path / "b", samples.LUCKFOX_PICO, closed).fix[0]
    accel = "/dev/accel/accel0 char 261:0 0600 0:0\nlive uid=1000 gids=1000 machine=aarch64"
    assert 'SUBSYSTEM=="accel", KERNEL=="accel*"' in first(tmp_path / "c", samples.ROCKET, accel).fix[0]


@pytest.mark.parametrize(
    ("kind", "handed", "unmasked", "grouped"),
    [
        ("/.dockerenv dir", "docker run --device /dev/dri", "systempaths=unconfined", "docker run --device"),
        ("/run/.containerenv dir", "podman run --device /dev/dri", "unmask=ALL", "podman run --device"),
        ("env KUBERNETES_SERVICE_HOST=10.0.0.1", "Pod: a device plugin", "procMount: Unmasked", "supplementalGroups"),
        ("/run/systemd/container = lxc", "lxc config device add", "lxc config device add", "lxc config device add"),
    ],
)
def test_each_kind_of_container_gets_the_command_of_its_own_engine(
    kind: str, handed: str, unmasked: str, grouped: str, tmp_path: Path
) -> None:
    gone = first(tmp_path / "a", samples.ROCK5B_61, "- /dev/dri", kind)
    assert gone.code == "NPU-E011" and gone.fix[0].startswith(handed)
    masked = first(tmp_path / "b", samples.ROCK5B_61, "- /proc/device-tree\n/proc/device-tree dir", kind)
    assert masked.code == "NPU-E020" and unmasked in masked.fix[0]
    closed = first(tmp_path / "c", samples.ROCK5B_61, "live uid=1001 gids=1001 machine=aarch64", kind)
    assert closed.code == "NPU-E010" and grouped in closed.fix[0] and "Log out" not in closed.fix[1]


def test_of_two_copies_the_newer_one_is_kept_whichever_the_loader_takes(tmp_path: Path) -> None:
    old, new = ("/usr/lib/aarch64-linux-gnu/librknnrt.so", "/usr/lib/librknnrt.so")
    text = "lib librknnrt version: {} (0123456789@2024-01-01)"
    for number, (taken, other) in enumerate((("1.4.0", "2.3.2"), ("2.3.2", "1.4.0"))):
        tables = (samples.ROCK5B_61, f"{old} {text.format(taken)}\n{new} {text.format(other)}")
        finding = next(one for one in found(tmp_path / str(number), tables)[1] if one.code == "NPU-V002")
        wanted = f"sudo install -m 644 {new} {old} " if other == "2.3.2" else f"sudo rm {new} "
        assert finding.fix[0].startswith(wanted)


@pytest.mark.parametrize(("machine", "abi"), [("armv7l", "armhf"), ("aarch64", "aarch64")])
def test_the_library_to_fetch_is_the_one_for_this_machine(machine: str, abi: str, tmp_path: Path) -> None:
    gone = f"live uid=1000 gids=44,109,1000 machine={machine}" + (
        "" if machine == "armv7l" else "\n- /usr/lib/librknnrt.so"
    )
    finding = first(tmp_path / "a", samples.ROCK5B_61, gone)
    assert finding.code == ("NPU-V007" if machine == "armv7l" else "NPU-V012")
    assert f"/librknn_api/{abi}/librknnrt.so" in finding.fix[0]
    assert finding.fix[1] == "sudo install -m 644 librknnrt.so /usr/lib/ && sudo ldconfig"


def test_no_command_copies_a_file_onto_itself(known: Known) -> None:
    for scenario in SCENARIOS:
        for finding in known(tuple(scenario.tables))[1]:
            for line in finding.fix:
                copied = re.search(r"(?:\bcp|install -m \d+) (\S+) (\S+)", line)
                assert copied is None or copied.group(1) != copied.group(2), line


def test_the_command_for_governors_pins_every_one_that_is_named(tmp_path: Path) -> None:
    slow = "/sys/class/devfreq/fdab0000.npu/governor = powersave"
    finding = first(tmp_path / "a", samples.ROCK5B_61, slow)
    assert finding.code == "NPU-P012" and "/sys/class/devfreq/fdab0000.npu/governor" in finding.fix[0]
    other = found(tmp_path / "b", (samples.ORANGEPI5_PRO_DKMS,))[1]
    assert not any("fdab0000.npu/governor" in line for one in other for line in one.fix)


def test_the_limit_of_open_files_is_raised_no_further_than_it_may_be(tmp_path: Path) -> None:
    head = "/proc/self/limits = Limit Soft Hard Units\\nMax open files            1024                 {}                files"
    for number, (hard, limit) in enumerate((("1048576", 65535), ("4096", 4096), ("unlimited", 65535))):
        finding = first(tmp_path / str(number), samples.ROCK5B_61, head.format(hard))
        assert finding.code == "NPU-E012" and finding.fix[0].startswith(f"ulimit -n {limit} ")


def test_one_witness_alone_does_not_say_whether_the_silicon_is_overstated(tmp_path: Path) -> None:
    blind = look(
        tmp_path / "a",
        samples.ORANGEPI3B,
        "- /sys/bus/nvmem\n- dmesg\n- /sys/kernel/debug\n- /sys/devices/system/cpu/present",
    )
    assert blind.value("soc.name") == "RK3566" and blind.value("soc.overstated") is None
    assert look(tmp_path / "b", samples.ORANGEPI5_PLUS).value("soc.overstated") is False


def test_a_picture_that_does_not_say_who_looked_leaves_access_open(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61)
    sheet = collect(System(root, live=Live()), lambda event: None)
    assert sheet.value("npu.device_node") and sheet.value("npu.device_accessible") is None
    assert "who looked" in sheet.reason("npu.device_accessible")


def test_a_memory_clock_that_no_table_knows_gives_no_type_and_says_which(tmp_path: Path) -> None:
    change = "/sys/class/devfreq/dmc/available_frequencies = 333000000 777000000"
    sheet = look(tmp_path / "a", samples.ROCK5B_61, change)
    assert sheet.value("ddr.type") is None and "777 MHz" in sheet.reason("ddr.type")


def test_a_built_in_driver_is_not_told_to_be_replaced_by_a_module(tmp_path: Path) -> None:
    change = "/sys/module/rknpu/version = 0.9.3\n- dmesg"
    finding = first(tmp_path / "a", samples.ROCK5B_61, change)
    assert finding.code == "NPU-V003" and "built in" in finding.fix[0]
    module = "/proc/modules = rknpu 1 0 - Live 0x0"
    assert "dist-upgrade" in first(tmp_path / "b", samples.ROCK5B_61, change, module).fix[0]


def test_a_module_that_lies_ready_is_named_in_the_command(tmp_path: Path) -> None:
    scenario = next(row for row in SCENARIOS if row.first == "NPU-K004")
    assert first(tmp_path / "a", *scenario.tables).fix[0] == "sudo modprobe rknpu"


def test_the_holder_of_the_npu_is_named_and_the_kit_itself_is_not(tmp_path: Path) -> None:
    holder = "holder 4711 rkllm_server /dev/dri/renderD129"
    root = build(tmp_path / "root", samples.ROCK5B_61, holder)
    sheet = collect(System(root), lambda event: None)
    assert sheet.value("tenants") == [{"pid": 4711, "name": "rkllm_server", "node": "/dev/dri/renderD129"}]
    own = Live(machine="aarch64", uid=1000, gids=(109,), pid=4711)
    assert collect(System(root, live=own), lambda event: None).value("tenants") == []


def test_a_holder_of_the_display_is_no_holder_of_the_npu(tmp_path: Path) -> None:
    sheet = look(tmp_path / "root", samples.ROCK5B_61, "holder 4711 weston /dev/dri/renderD128")
    assert sheet.value("tenants") == []


def test_a_silicon_with_fewer_cores_is_found_without_its_otp(tmp_path: Path) -> None:
    no_line = "- dmesg\ndmesg [drm] Initialized rknpu 0.9.8 20240828 for fdab0000.npu on minor 1"
    sheet = look(tmp_path / "root", samples.ROCK5C_LITE, no_line)
    assert sheet.value("soc.name") == "RK3582 or RK3583"
    assert sheet["soc.name"].provenance.value == "assumed"
    assert sheet.value("npu.cores") == 2
    assert "NPU-E030" in codes(judge(sheet))


def test_two_cores_in_the_load_file_outweigh_the_device_tree(tmp_path: Path) -> None:
    root = "live uid=0 gids=0 machine=aarch64\n- /sys/kernel/debug/rknpu/load\n/sys/kernel/debug/rknpu/load = NPU load:  Core0:  0%, Core1:  0%,"
    sheet = look(tmp_path / "root", samples.ROCK5B_61, root)
    assert sheet.value("npu.cores") == 2
    assert sheet.value("soc.name") == "RK3582 or RK3583"


@pytest.mark.parametrize(
    ("number", "word"),
    [((0, 4, 2), "32-byte"), ((0, 8, 5), "40-byte"), ((0, 9, 6), "48-byte"), ((0, 10, 0), "48-byte"), (None, None)],
)
def test_the_generation_of_the_ioctls_follows_the_driver(number: Any, word: str | None) -> None:
    text = versions.ioctl_generation(number)
    assert text is None if word is None else word in str(text)


def test_without_pyudev_the_fact_says_so_and_nothing_else_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyudev", None)
    value, reason = udev_properties("/dev/null")
    assert value is None and "pyudev" in reason


def test_udev_properties_come_through_when_there_are_any(tmp_path: Path) -> None:
    root = build(tmp_path / "root", samples.ROCK5B_61)
    live = replace(System(root).live, udev=lambda path: ({"ID_PATH": f"platform of {path}"}, ""))
    sheet = collect(System(root, live=live), lambda event: None)
    assert sheet.value("npu.udev") == {"ID_PATH": "platform of /dev/dri/renderD129"}


def test_every_null_fact_has_a_reason_and_says_whether_root_would_help(tmp_path: Path) -> None:
    sheet = look(tmp_path / "root", samples.ROCK5B_61)
    assert sheet["npu.load_percent"].needs_root
    assert all(fact.reason for fact in sheet.values() if fact.value is None)
    assert all(fact.value is None for fact in sheet.values() if fact.needs_root)
    assert not sheet["ddr.counters_present"].needs_root


def test_no_source_of_the_kit_names_the_memory_device() -> None:
    name = "/dev/" + "mem"
    for folder in ("probes", "c_probes", "reports", "reference_engine"):
        for file in (CHECKOUT / folder).rglob("*"):
            if file.suffix in (".py", ".c", ".h") and file.is_file():
                assert not re.search(rf'"{name}\b', file.read_text(encoding="utf-8", errors="replace")), file


def test_each_fact_is_sent_as_it_is_found(tmp_path: Path) -> None:
    sent: list[object] = []
    sheet = collect(System(build(tmp_path / "root", samples.ROCK4D)), sent.append)
    assert [fact.key for fact in sent if isinstance(fact, Fact)] and {
        fact.key for fact in sent if isinstance(fact, Fact)
    } == set(sheet)


def test_the_list_of_facts_in_the_readme_is_complete(known: Known) -> None:
    text = (CHECKOUT / "probes" / "facts" / "README.md").read_text(encoding="utf-8")
    missing = set()
    for board in BOARDS:
        for key in known((board.table,))[0]:
            stem = re.sub(r"_(?:hz|bytes_soft|bytes_hard|hard)$|(?<=npu\.clock)_\w+$", "", key)
            if key not in text and stem not in text:
                missing.add(key)
    assert missing == set()


def test_other_routes_to_the_same_facts(tmp_path: Path) -> None:
    sheet = look(tmp_path / "root", samples.ROCK5B_61, samples.CORNERS)
    seen = {
        **{"npu.clock_now_hz": 600000000, "npu.governor": "performance", "npu.load_percent": [3, 0, 0]},
        **{"npu.power_state": "on", "npu.sram_total_bytes": 978944, "npu.busy": True, "ddr.type": "LPDDR4X"},
        **{"ddr.width_bits": 32, "ddr.theoretical_gbps": 16.9, "ddr.counters_present": True, "host.uptime_s": 12345},
        **{"ddr.counters_permitted": False, "cpu.idle_state1_disabled": True, "cpu.last_cache_bytes": 3145728},
        **{"memory.swiotlb_bytes": 67108864, "npu.module_parameters": {"bypass_irq_handler": "0"}},
    }
    assert {key: sheet.value(key) for key in seen} == seen
    assert sheet["ddr.type"].provenance.value == "read"
    assert {row["path"] for row in sheet.rows("npu.dt_nodes")} == {
        "/proc/device-tree/npu@fdab0000",
        "/proc/device-tree/soc/npu@27700000",
    }


def test_a_node_is_found_by_its_stable_link_where_sysfs_is_hidden(tmp_path: Path) -> None:
    hidden = "- /sys/class/drm\n- /sys/devices/platform/fdab0000.npu/drm\n/dev/dri/by-path/platform-fdab0000.npu-render -> ../renderD129"
    assert look(tmp_path / "root", samples.ROCK5B_61, hidden).value("npu.device_node") == "/dev/dri/renderD129"


def test_every_path_on_the_list_is_asked_for_by_some_tree(tmp_path: Path) -> None:
    asked: set[str] = set()
    tables = [(board.table,) for board in BOARDS] + [row.tables for row in SCENARIOS]
    hidden = "- /sys/class/drm\n- /sys/devices/platform/fdab0000.npu/drm\n/dev/dri/by-path/platform-fdab0000.npu-render -> ../renderD129"
    tables.append((samples.ROCK5B_61, hidden))
    for number, table in enumerate(tables):
        system = System(build(tmp_path / str(number), *table))
        collect(system, lambda event: None)
        asked |= {path for _, path in system.answers}
    unused = []
    for _, globs in paths.ALLOWED:
        for glob in globs:
            pattern = re.compile(re.escape(glob).replace(r"\*", "[^/]*"))
            if glob != "/proc/*/fd/*" and not any(pattern.fullmatch(path) for path in asked):
                unused.append(glob)
    assert unused == []


def test_the_catalogue_is_append_only() -> None:
    published = {f"NPU-{letter}{number}" for letter, numbers in PUBLISHED.items() for number in numbers.split()}
    assert published == {entry.code for entry in catalogue.ENTRIES}
