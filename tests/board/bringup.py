# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of a table is a line of a file on the board)
"""Troubles of bringing a board up, and cases that must not be taken for trouble, one row each."""

from __future__ import annotations

from tests.board import samples
from tests.board.parts import identity
from tests.board.samples import MAINLINE_CONFIG
from tests.board.tree import GENERIC, interrupts, meminfo, zones
from tests.board.trouble import (
    CLEAN,
    CORES,
    FAULTS,
    HEALTHY,
    IOMMU_ON,
    LIBRARY,
    MAINLINE_356X,
    RK356X,
    STUCK,
    Scenario,
    healthy,
    unbound,
    with_driver,
)

VERDICTS: tuple[Scenario, ...] = (
    Scenario(
        "soft limit of open files 1024",
        "rknn-llm 139, 43, 26, 47",
        healthy(
            "/proc/self/limits = Limit Soft Hard Units\\nMax open files            1024                 1048576              files"
        ),
        "NPU-E012",
    ),
    Scenario(
        "5.10 rkr6 kernel",
        "linux-rockchip 157",
        healthy("/proc/sys/kernel/osrelease = 5.10.209-rkr6-rockchip"),
        "NPU-K007",
    ),
    Scenario("driver 0.8.8 on kernel 6.1", "linux-rockchip 158", healthy(with_driver("0.8.8")), "NPU-K008"),
    Scenario(
        "RK3568 with 8 GB, mainline, IOMMU on",
        "armbian build 9403, 10366",
        (MAINLINE_356X, IOMMU_ON, meminfo(8000000, 65536, 60000)),
        "NPU-M012",
    ),
    Scenario(
        "the same, jobs time out",
        "armbian build 9403, 10366",
        (MAINLINE_356X, IOMMU_ON, FAULTS, meminfo(8000000, 65536, 60000)),
        "NPU-M013",
        also=("NPU-K020",),
        never=("NPU-M012",),
    ),
    Scenario(
        "RK3576 never left 300 MHz though it worked",
        "radxa kernel 432",
        (
            samples.ROCK4D,
            interrupts(8, [(61, [900000, 0, 0, 0, 9000, 0, 0, 0], "27700000.npu")]),
            (
                "/sys/class/devfreq/27700000.npu/trans_stat =      From  :   To\\n           : 300000000 950000000   "
                "time(ms)\\n* 300000000:         0         0   9665752\\n 950000000:         0         0         "
                "0\\nTotal transition : 0"
            ),
        ),
        "NPU-P011",
    ),
    Scenario(
        "power domain -110",
        "rk3576-npu-llm troubleshooting",
        (samples.ROCK4D, "dmesg RKNPU: failed to get pm runtime for npu0, ret: -110"),
        "NPU-K009",
    ),
    Scenario(
        "swiotlb full",
        "rknn-toolkit2 218",
        (
            samples.ORANGEPI3B_DKMS,
            "dmesg RKNPU fde40000.npu: swiotlb buffer is full (sz: 1048576 bytes), total 32768 (slots), used 14 (slots)",
        ),
        "NPU-M015",
    ),
    Scenario(
        "driver 0.6.4 shows no load",
        "rknpu2 42",
        (RK356X, "/sys/module/rknpu/version = 0.6.4", "- dmesg", "- /sys/kernel/debug/rknpu"),
        "NPU-V004",
        also=("NPU-V008",),
    ),
    Scenario("jobs time out on a vendor kernel", "rknn-toolkit2 49, 244, 320", healthy(FAULTS), "NPU-K020"),
    Scenario(
        "NPU capped by heat",
        "rknn-cpp-Multithreading 44, 48",
        healthy("/sys/class/devfreq/fdab0000.npu/max_freq = 800000000", zones(("npu-thermal", 88000))),
        "NPU-P015",
    ),
    Scenario(
        "unused regulator is cut before the driver loads",
        "flipperone 55, 159",
        (
            samples.ROCKET,
            "\n".join(unbound(f"{at}.npu", "rockchip,rk3588-rknn-core") for at in CORES),
            "- /sys/class/accel\n- /dev/accel\n- /proc/modules",
            "dmesg vdd_npu_s0: disabling",
        ),
        "NPU-K015",
    ),
    Scenario("RK3576 is not taken for RK3588", "rkllama 82", (samples.ROCK4D, LIBRARY.format("2.3.2")), CLEAN),
    Scenario(
        "supplier of the NPU missing",
        "board log, mainline RK3588",
        (
            samples.ROCKET,
            "\n".join(unbound(f"{at}.npu", "rockchip,rk3588-rknn-core") for at in CORES),
            "- /sys/class/accel\n- /dev/accel\n- /proc/modules",
            "/sys/devices/platform/fdab0000.npu/waiting_for_supplier = 1",
            "/sys/kernel/debug/devices_deferred = fdab0000.npu\tplatform: wait for supplier /i2c@fd880000/regulator@42",
        ),
        "NPU-K005",
    ),
    Scenario(
        "driver fails to start: interrupt cells",
        "rknpu-rk3588 porting journal",
        healthy(
            unbound("fdab0000.npu", "rockchip,rk3588-rknpu"),
            "dmesg RKNPU fdab0000.npu: request_irq failed: -22",
            "dmesg RKNPU: probe of fdab0000.npu failed with error -22",
        ),
        "NPU-K012",
    ),
    Scenario(
        "no NPU node in the device tree",
        "armbian build 8979; istoreos 2774",
        healthy(
            unbound("fdab0000.npu", "x"),
            "- /sys/devices/platform/fdab0000.npu",
            "- /sys/bus/platform/devices/fdab0000.npu",
            "- /proc/device-tree/npu@fdab0000",
        ),
        "NPU-K006",
    ),
    Scenario(
        "module on the blacklist",
        "mainline notes",
        (
            samples.ORANGEPI3B_DKMS,
            unbound("fde40000.npu", "rockchip,rk3568-rknpu"),
            "- /proc/modules\n- /sys/class/drm\n- /dev/dri",
            "/lib/modules/6.19.0-dietpi/modules.dep = updates/dkms/rknpu.ko.xz:",
            "/etc/modprobe.d/npu.conf = blacklist rknpu",
        ),
        "NPU-K016",
    ),
    Scenario(
        "module not loaded",
        "DietPi 7254, 7301, 7856",
        (
            samples.ORANGEPI3B_DKMS,
            unbound("fde40000.npu", "rockchip,rk3568-rknpu"),
            "- /proc/modules\n- /sys/class/drm\n- /dev/dri",
            "/lib/modules/6.19.0-dietpi/modules.dep = updates/dkms/rknpu.ko.xz:",
        ),
        "NPU-K004",
    ),
    Scenario(
        "clock firmware refuses the voltage",
        "board log, 5.10.226",
        healthy("dmesg rockchip_pvtpll_set_volt_sel: error cfg clk_id=6 voltsel (-1)"),
        "NPU-K011",
        also=("NPU-K090",),
    ),
    Scenario(
        "RK3566 with 8 GB without IOMMU, jobs time out",
        "board log, 7.2.2 with DKMS",
        (samples.ORANGEPI3B_DKMS, meminfo(8000000, 1048576, 900000), FAULTS.replace("0x10000", "0x0")),
        "NPU-K020",
        also=("NPU-M014",),
    ),
    Scenario(
        "domain switch times out, load says idle",
        "ork-driver notes",
        healthy(
            "- /sys/kernel/debug/rknpu/load",
            "/sys/kernel/debug/rknpu/load = NPU load:  Core0:  0%, Core1:  0%, Core2:  0%,",
            "dmesg RKNPU: switch iommu domain time out, failed to switch iommu domain, id: 1",
        ),
        "NPU-K025",
        also=("NPU-K023",),
    ),
    Scenario(
        "page faults of the NPU's IOMMU",
        "driver strings",
        healthy("dmesg rk_iommu fdab9000.iommu: Page fault at 0x00000000f0000000 of type read"),
        "NPU-K021",
    ),
    Scenario(
        "page faults of the display are not ours",
        "board log, RK3568",
        (HEALTHY, "dmesg rk_iommu fe043e00.iommu: Page fault at 0x00000000ff801000 of type read"),
        CLEAN,
    ),
    Scenario("address space used up", "rknn-llm 97", healthy("dmesg RKNPU: failed to allocate IOVA: -12"), "NPU-M016"),
    Scenario(
        "somebody holds the NPU",
        "rknpu2 135; igou-kubernetes 869",
        healthy("holder 4711 rkllm_server /dev/dri/renderD129"),
        "NPU-S001",
    ),
    Scenario(
        "driver running, node gone",
        "rknn-toolkit2 138",
        healthy("- /dev/dri/renderD129", "- /dev/dri/card1"),
        "NPU-E014",
    ),
    Scenario(
        "librknnrt for another machine only",
        "rknn-toolkit2 issues on 32-bit systems",
        healthy("live uid=1000 gids=44,109,1000 machine=armv7l"),
        "NPU-V007",
    ),
    Scenario(
        "max_freq of the NPU lowered by hand",
        "rknn-llm 409",
        healthy("/sys/class/devfreq/fdab0000.npu/max_freq = 600000000"),
        "NPU-P018",
    ),
    Scenario(
        "memory never ran at its highest clock",
        "rknn-llm 346",
        healthy(
            "/sys/class/devfreq/dmc/cur_freq = 528000000",
            "/sys/class/devfreq/dmc/trans_stat =      From  :   To\\n           : 5280000002112000000   time(ms)\\n* 528000000:         0         0   1665752\\n 2112000000:         0         0         0\\nTotal transition : 0",
        ),
        "NPU-P017",
    ),
    Scenario(
        "IOMMU of the NPU does not answer",
        "driver strings",
        healthy("dmesg rk_iommu fdab9000.iommu: Enable stall request timed out, status: 0x00004b"),
        "NPU-K022",
    ),
    Scenario(
        "driver in a domain it did not set",
        "driver strings",
        healthy("dmesg RKNPU: mismatch domain get from iommu_get_domain_for_dev"),
        "NPU-K024",
    ),
    Scenario("job aborted", "driver strings", healthy("dmesg RKNPU: job abort, flags: 0x5, ret: -4"), "NPU-K026"),
    Scenario(
        "module replaced after boot",
        "known from no report",
        healthy("/sys/module/rknpu/version = 0.9.7"),
        "NPU-V011",
        also=("NPU-V009",),
    ),
    Scenario(
        "NPU works for a user that cannot be seen",
        "rknpu2 135",
        healthy(
            "- /sys/kernel/debug/rknpu/load",
            "/sys/kernel/debug/rknpu/load = NPU load:  Core0: 97%, Core1:  0%, Core2:  0%,",
            "/proc/812/fd dir",
            "closed /proc/812/fd",
        ),
        "NPU-S004",
    ),
    Scenario(
        "a Rockchip board without an NPU",
        "no trouble at all",
        (
            GENERIC,
            identity("Radxa ROCK Pi 4B", "radxa,rockpi4b rockchip,rk3399", "6.12.0", "Armbian 25.2"),
            MAINLINE_CONFIG,
            "/sys/devices/system/cpu/online = 0-5\n/sys/devices/system/cpu/present = 0-5",
        ),
        CLEAN,
        also=("NPU-E002",),
    ),
    Scenario(
        "RK3588S with an OTP variant that no table knows",
        "SBC",
        (
            samples.ORANGEPI5_PRO_BSP,
            "/sys/bus/nvmem/devices/rockchip-otp0/nvmem hex 52 4b 35 88 12 fe 77 41 00 00 00 00 00 00 00 00",
            LIBRARY.format("2.3.2"),
        ),
        CLEAN,
        never=("NPU-E030", "NPU-E002"),
    ),
    Scenario(
        "a processor or the NPU is cooled by a lower clock",
        "rknn-cpp-Multithreading 48",
        healthy(samples.CORNERS),
        "NPU-P015",
    ),
    Scenario(
        "all completions are served by a little core",
        "interrupt audit of a board with split nodes",
        healthy(STUCK.replace("9000", "0")),
        CLEAN,
        also=("NPU-P016",),
    ),
    Scenario("completions on two cores", "interrupt audit", healthy(STUCK), CLEAN, never=("NPU-P016",)),
    Scenario(
        "a laptop",
        "no board",
        (
            "/proc/sys/kernel/osrelease = 6.8.0\nlive uid=1000 gids=1000 machine=x86_64\n/sys/bus/platform/devices/serial8250 dir\n/proc/meminfo = MemTotal: 8000000 kB",
        ),
        CLEAN,
        also=("NPU-E001",),
    ),
    Scenario(
        "a cloud container on Arm",
        "no board",
        ("/.dockerenv dir\nlive uid=0 gids=0 machine=aarch64\n/proc/sys/kernel/osrelease = 6.8.0-aws",),
        CLEAN,
        also=("NPU-E021",),
        never=("NPU-E020",),
    ),
    Scenario(
        "an unknown Rockchip SoC",
        "none yet",
        healthy("/proc/device-tree/compatible = acme,board\\0rockchip,rk9999\\0"),
        CLEAN,
        also=("NPU-E002",),
    ),
)
