# SPDX-License-Identifier: Apache-2.0
"""Parsers of kernel text: right on the samples, silent on everything else."""

from __future__ import annotations

import gzip
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes.facts import kernel, klog, parse, soc_table
from probes.facts.klog_table import CLASSES, classify

TEXT_PARSERS: tuple[Callable[[str | None], Any], ...] = (
    *(
        parse.integer,
        parse.hertz,
        parse.integers,
        parse.words,
        parse.version,
        parse.pairs,
        parse.cpu_list,
        parse.meminfo,
    ),
    *(parse.driver_version, parse.npu_load, parse.sram_totals, parse.trans_stat, parse.limits, parse.process_ids),
    *(parse.group_names, parse.midr, parse.cpuinfo, parse.percent_at, parse.dmcinfo, parse.kernel_options),
    *(kernel.npu_modules, lambda text: klog.sort_lines(text or ""), lambda text: kernel.flavour(text, {})),
    *(lambda text: parse.interrupts(text, ".npu"), lambda text: parse.clock_rate(text, ("scmi_clk_npu",))),
    lambda text: soc_table.soc_of_compatible((text or "").split("\0")),
)
KERNEL_TEXT = st.text(
    alphabet=st.sampled_from("0123456789abcdefxRKNPU load:Core%@HzMaxkB.,=*()[]-_\n\t\0 CONFIGcpuinfo"), max_size=300
)


@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=300) | KERNEL_TEXT, parser=st.sampled_from(TEXT_PARSERS))
def test_a_parser_never_raises(text: str, parser: Callable[[str | None], Any]) -> None:
    parser(text)


@pytest.mark.parametrize("parser", TEXT_PARSERS)
def test_a_parser_takes_a_file_that_is_not_there(parser: Callable[[str | None], Any]) -> None:
    parser(None)


@pytest.mark.parametrize(
    ("text", "load"),
    [
        ("NPU load:  Core0:  0%, Core1:  0%, Core2:  0%,\n", [0, 0, 0]),
        ("NPU load:  Core0: 86%, Core1: 84%, Core2: 61%,\n", [86, 84, 61]),
        ("NPU load:  Core0:  0%, Core1:  7%,\n", [0, 7]),
        ("NPU load:  0%\n", [0]),
        ("NPU load:  100%\n", [100]),
        ("NPU load: 137%\n", [137]),
        ("", None),
        ("Core0", None),
        ("no such file", None),
    ],
)
def test_load_of_every_driver_form(text: str, load: list[int] | None) -> None:
    assert parse.npu_load(text) == load


@settings(max_examples=100, deadline=None)
@given(loads=st.lists(st.integers(0, 100), min_size=1, max_size=3))
def test_load_survives_the_drivers_own_format(loads: list[int]) -> None:
    fields = "".join(f" Core{index}: {load:2d}%," for index, load in enumerate(loads))
    assert parse.npu_load(f"NPU load: {fields}\n") == loads


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.integers(10**8, 9 * 10**9), st.integers(0, 10**12)),
        min_size=1,
        max_size=8,
        unique_by=lambda r: r[0],
    ),
    now=st.integers(0, 7),
)
def test_residency_survives_the_kernels_own_format(rows: list[tuple[int, int]], now: int) -> None:
    now %= len(rows)
    lines = ["     From  :   To", "           :" + "".join(f"{hz:10d}" for hz, _ in rows) + "   time(ms)"]
    for index, (hz, ms) in enumerate(rows):
        lines.append(("*" if index == now else " ") + f"{hz:10d}:" + "".join(f"{0:10d}" for _ in rows) + f"{ms:10d}")
    found = parse.trans_stat("\n".join([*lines, "Total transition : 33"]))
    assert [(row.hz, row.ms) for row in found] == rows
    assert [index for index, row in enumerate(found) if row.now] == [now]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("RKNPU driver: v0.9.8\n", "0.9.8"),
        ("0.9.6", "0.9.6"),
        ("RKNPU driver: v0.10.12", "0.10.12"),
        ("librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)", "2.3.2"),
        ("garbage", None),
        ("", None),
    ],
)
def test_versions(text: str, number: str | None) -> None:
    assert parse.driver_version(text) == number


@settings(max_examples=200, deadline=None)
@given(cpus=st.sets(st.integers(0, 63)))
def test_a_cpu_list_survives_both_ways_of_writing(cpus: set[int]) -> None:
    assert parse.cpu_list(",".join(str(cpu) for cpu in cpus)) == sorted(cpus)
    assert parse.cpu_list(" ".join(str(cpu) for cpu in sorted(cpus))) == sorted(cpus)


def test_a_range_of_cpus() -> None:
    assert parse.cpu_list("0-3,6\n") == [0, 1, 2, 3, 6]
    assert parse.cpu_list("3-0") == []
    assert parse.cpu_list("0-99999999") == []


@settings(max_examples=100, deadline=None)
@given(part=st.sampled_from(sorted(parse.ARM_PARTS)), variant=st.integers(0, 15), revision=st.integers(0, 15))
def test_midr_fields(part: int, variant: int, revision: int) -> None:
    word = (0x41 << 24) | (variant << 20) | (0xF << 16) | (part << 4) | revision
    assert parse.core_name(parse.midr(f"0x{word:016x}\n")) == f"{parse.ARM_PARTS[part]} r{variant}p{revision}"


def test_midr_of_the_sample_boards() -> None:
    names = [
        parse.core_name(parse.midr(text))
        for text in ("0x00000000412fd050", "0x00000000414fd0b0", "0x410fd034", "0x411fd080")
    ]
    assert names == ["Cortex-A55 r2p0", "Cortex-A76 r4p0", "Cortex-A53 r0p4", "Cortex-A72 r1p0"]


def test_cpuinfo_tells_cores_apart() -> None:
    text = (
        "processor\t: 0\nBogoMIPS\t: 48.00\nCPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x2\n"
        "CPU part\t: 0xd05\nCPU revision\t: 0\n\nprocessor\t: 4\nCPU implementer\t: 0x41\nCPU variant\t: 0x4\n"
        "CPU part\t: 0xd0b\nCPU revision\t: 0\n\nSerial\t\t: 0000000000000000\n"
    )
    assert {cpu: parse.core_name(row) for cpu, row in parse.cpuinfo(text).items()} == {
        0: "Cortex-A55 r2p0",
        4: "Cortex-A76 r4p0",
    }


def test_sram_totals_of_the_vendor_document() -> None:
    rows = "".join(f"[{row:03d}] [{'*' * 32}]\n" for row in range(7))
    text = (
        f'SRAM bitmap: "*" - used, "." - free (1bit = 4KB)\n{rows}SRAM total size: 978944, used: 524288, free: 454656\n'
    )
    assert parse.sram_totals(text) == (978944, 454656)


def test_dmcinfo_of_the_vendor_guide() -> None:
    text = "DramType: LPDDR4\nDramCapacity:\nBus Width: 32 bit\nTotalSize: 2048 MB\ncur_freq: 780000000\n"
    assert parse.dmcinfo(text) == {"type": "LPDDR4", "width_bits": 32, "clock_hz": 780000000}


def test_interrupt_rows_of_a_split_layout() -> None:
    text = (
        "           CPU0       CPU1       CPU2       CPU3\n"
        " 12:        1          2          3          4     GICv3  30 Level     arch_timer\n"
        " 82:      46744          0          0          0     GICv3 142 Level     fdab9000.iommu, fdab0000.npu\n"
        "IPI0:       1          1          1          1       Rescheduling interrupts\n"
    )
    assert parse.interrupts(text, ".npu") == [
        parse.Interrupt(82, (46744, 0, 0, 0), "GICv3 142 Level fdab9000.iommu, fdab0000.npu")
    ]


def test_limits_with_and_without_a_number() -> None:
    text = (
        "Limit                     Soft Limit           Hard Limit           Units     \n"
        "Max open files            1024                 1048576              files     \n"
        "Max locked memory         unlimited            unlimited            bytes     \n"
    )
    assert parse.limits(text)["Max open files"] == (1024, 1048576)
    assert parse.limits(text)["Max locked memory"] == (None, None)


@pytest.mark.parametrize("text", ["-1", "99999999999999999999", "1e9", "0x10", "12 13", "", "  "])
def test_numbers_out_of_range_or_of_another_form_are_no_clock(text: str) -> None:
    assert parse.hertz(text) is None


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        (["rockchip,rk3588-orangepi-5-plus", "rockchip,rk3588"], "RK3588"),
        (["xunlong,orangepi-5", "rockchip,rk3588s"], "RK3588S"),
        (["rockchip,rk3588s-orangepi-5", "rockchip,rk3588s", "rockchip,rk3588"], "RK3588S"),
        (["radxa,rock-4d", "rockchip,rk3576"], "RK3576"),
        (["rockchip,rv1106g-38x38-ipc-v10", "rockchip,rv1106"], "RV1106"),
        (["acme,board", "rockchip,rk9999"], "RK9999"),
        (["raspberrypi,4-model-b", "brcm,bcm2711"], None),
        (["rockchip,rk3588-evb"], None),
        ([], None),
    ],
)
def test_the_soc_is_the_most_specific_entry_and_never_a_guess(entries: list[str], name: str | None) -> None:
    assert soc_table.soc_of_compatible(entries) == name


@pytest.mark.parametrize(
    ("data", "soc"),
    [
        ("52 4b 35 88 12 fe 21 41 00 00", ("3588", "RK3588")),
        ("52 4b 35 88 12 fe 33 41 00 00", ("3588", "RK3588S")),
        ("52 4b 35 88 12 fe 53 41 00 00", ("3588", "RK3588S2")),
        ("52 4b 35 88 12 fe 77 41 00 00", ("3588", None)),
        ("00 00 52 4b 35 82 12 fe 21 41 00 00", ("3582", "RK3582")),
        ("52 4b 35 76 22 00 ff 00 13 01", ("3576", "RK3576S")),
        ("52 4b ff ff ff ff ff ff ff ff", None),
        ("52 4b 35 88", None),
        ("", None),
    ],
)
def test_the_otp_names_the_silicon(data: str, soc: tuple[str, str | None] | None) -> None:
    assert soc_table.soc_of_otp(bytes.fromhex(data)) == soc


@settings(max_examples=200, deadline=None)
@given(data=st.binary(max_size=200))
def test_any_otp_bytes_are_taken(data: bytes) -> None:
    soc_table.soc_of_otp(b"RK" + data)
    kernel.unpack(data)


def test_a_gzip_bomb_is_cut_off() -> None:
    text = kernel.unpack(gzip.compress(b"CONFIG_X=y\n" * 1_000_000, 1))
    assert text is not None and len(text) <= kernel.MAX_CONFIG


@pytest.mark.parametrize(
    ("line", "name", "kind"),
    [
        ("RKNPU fdab0000.npu: can't request region for resource [mem 0xfdab0000-0xfdabffff]", "region-claim", "benign"),
        ("RKNPU fdab0000.npu: failed to find power_model node", "power-model", "benign"),
        ("RKNPU fdab0000.npu: RKNPU: failed to initialize power model", "power-model", "benign"),
        ("RKNPU fdab0000.npu: RKNPU: failed to get dynamic-coefficient", "power-model", "benign"),
        ("rockchip,bus bus-npu: Failed to get leakage", "leakage-missing", "benign"),
        ("vdd_npu_s0: could not add device link fdab0000.npu: -EEXIST", "device-link-exists", "benign"),
        ("RKNPU fdab0000.npu: RKNPU: rknpu iommu is enabled, using iommu mode", "iommu-on", "info"),
        (
            "RKNPU fdab0000.npu: RKNPU: rknpu iommu device-tree entry not found!, using non-iommu mode",
            "iommu-off",
            "info",
        ),
        ("[drm] Initialized rknpu 0.9.8 for fdab0000.npu on minor 2", "initialized", "info"),
        ("RKNPU fdab0000.npu: RKNPU: bin=0", "speed-bin", "info"),
        ("RKNPU: soft reset, num: 6", "soft-reset", "info"),
        ("RKNPU: switch iommu domain from 0 to 1", "domain-switch", "info"),
        ("RKNPU: switch iommu domain time out, failed to switch iommu domain, id: 1", "domain-switch-timeout", "fault"),
        (
            "RKNPU: job timeout, flags: 0x0, irq status: 0x0, raw status: 0x0, require mask: 0x300",
            "job-timeout",
            "fault",
        ),
        ("RKNPU: failed to wait job, task counter: 0, flags: 0x5, ret = -512", "job-timeout", "fault"),
        ("RKNPU: \tcore 0 irq status: 0x0, raw status: 0x10000, require mask: 0x300", "job-status", "fault"),
        ("rk_iommu fdab9000.iommu: Page fault at 0x00000000f0000000 of type read", "iommu-fault", "fault"),
        ("rk_iommu fdab9000.iommu: Enable stall request timed out, status: 0x4b", "iommu-stall", "fault"),
        ("RKNPU: failed to get pm runtime for npu0, ret: -110", "pm-runtime", "fault"),
    ],
)
def test_a_line_of_the_log_has_its_class(line: str, name: str, kind: str) -> None:
    row = classify(line)
    assert row is not None and (row.name, row.kind) == (name, kind)


@pytest.mark.parametrize(
    "line",
    [
        "rk_iommu fe043e00.iommu: Page fault at 0x00000000ff801000 of type read",
        "usb 1-1: device descriptor read/64, error -71",
        "mmc0: Timeout waiting for hardware interrupt.",
        "panthor fb000000.gpu: can't request region",
    ],
)
def test_lines_of_other_devices_are_left_alone(line: str) -> None:
    assert classify(line) is None


def test_the_date_in_the_drivers_line_is_optional() -> None:
    with_date = klog.initialized("[drm] Initialized rknpu 0.9.6 20240322 for fdab0000.npu on minor 1")
    without = klog.initialized("[drm] Initialized rknpu 0.9.8 for fdab0000.npu on minor 2")
    assert with_date is not None and (with_date["version"], with_date["date"]) == ("0.9.6", "20240322")
    assert without is not None and (without["version"], without["date"]) == ("0.9.8", None)


def test_numbers_of_the_boot_log() -> None:
    found = klog.sort_lines(
        "[    1.0] RKNPU fdab0000.npu: pvtm-volt-sel=3\n<6>[    1.1] RKNPU fdab0000.npu: pvtm=877\n"
        "RKNPU fdab0000.npu: l=15000 h=85000 hyst=5000 l_limit=0 h_limit=800000000 h_table=0\n"
        "RKNPU: sram region: [0xff001000, 0xff0f0000), sram size: 0xef000\ncpu cpu4: pvtm-volt-sel=4\n"
        "rockchip-dmc dmc: current ATF version 0x0\n"
    )
    numbers = found["numbers"]
    assert (numbers["npu_pvtm_volt_sel"], numbers["npu_pvtm"]) == (3, 877)
    assert (numbers["npu_hot_mc"], numbers["npu_hot_limit_hz"]) == (85000, 800000000)
    assert numbers["sram_bytes"] == 978944
    assert numbers["cpu_bins"] == {"cpu4": {"pvtm_volt_sel": 4}}
    assert numbers["dmc_atf"] == "0x0"


def test_patterns_of_lines_are_in_lower_case_as_the_lines_they_see() -> None:
    for row in CLASSES:
        assert not re.search(r"[A-Z]", re.sub(r"\\[a-zA-Z]", "", row.pattern.pattern)), row.name
        assert all(word == word.lower() for word in row.words)


def test_a_log_of_a_hundred_thousand_lines_is_sorted_in_reasonable_time() -> None:
    line = "RKNPU fdab0000.npu: something that no class knows, at length, iommu swiotlb dmc leakage"
    started = time.process_time()
    found = klog.sort_lines("\n".join([line] * 100_000 + ["RKNPU: job timeout, flags: 0x0:"]))
    assert found["counts"]["fault"] == 1
    assert time.process_time() - started < 10
