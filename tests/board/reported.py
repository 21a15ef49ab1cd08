# SPDX-License-Identifier: Apache-2.0

"""Troubles that people report in public threads, one row each."""

from __future__ import annotations

from tests.board import samples
from tests.board.parts import BOOT_NUMBERS, rk3588_cpus
from tests.board.tree import meminfo
from tests.board.trouble import (
    CLEAN,
    CORES,
    DTBO,
    LIBRARY,
    MASKED_TREE,
    NO_DRM_IN_CONTAINER,
    RK356X,
    Scenario,
    healthy,
    unbound,
    with_driver,
)

TIER3: tuple[Scenario, ...] = (
    Scenario(
        "an old librknnrt shadows the new one",
        "rknn-toolkit2 405, 254, 281, 233, 212",
        healthy(
            "/usr/lib/aarch64-linux-gnu/librknnrt.so lib librknnrt version: 1.4.0 (a@2022-09-09)",
            "/etc/ld.so.conf = /usr/lib/aarch64-linux-gnu",
        ),
        "NPU-V002",
    ),
    Scenario(
        "driver 0.8.2 with runtime 2.3.2",
        "rknn-llm 290, 413, 449",
        healthy(with_driver("0.8.2"), "/proc/sys/kernel/osrelease = 5.10.160-rockchip"),
        "NPU-V001",
        also=("NPU-V004",),
    ),
    Scenario(
        "driver 0.9.5 with librkllmrt 1.1.4",
        "rknn-llm 62, 97, 187, 235",
        healthy(with_driver("0.9.5"), "/usr/lib/librkllmrt.so lib rkllm-runtime version: 1.1.4"),
        "NPU-V001",
    ),
    Scenario(
        "driver 0.9.7 with librkllmrt 1.1.4",
        "linux-rockchip (Joshua-Riek) 36; ezrknn-llm 19",
        healthy(with_driver("0.9.7"), "/usr/lib/librkllmrt.so lib rkllm-runtime version: 1.1.4"),
        "NPU-V010",
        also=("NPU-V009",),
    ),
    Scenario(
        "a pair that nobody reported",
        "known from no report",
        healthy(with_driver("0.10.1")),
        "NPU-V005",
        never=("NPU-V001",),
    ),
    Scenario("driver 0.9.3", "radxa kernel 312", healthy(with_driver("0.9.3")), "NPU-V003", never=("NPU-K008",)),
    Scenario(
        "DRM render node, no /dev/rknpu: as it should be",
        "rknn-toolkit2 534",
        healthy(),
        CLEAN,
    ),
    Scenario(
        "/dev/rknpu links to the render node",
        "rknn-toolkit2 534; rk-llama.cpp 19",
        healthy("/dev/rknpu -> /dev/dri/renderD129"),
        "NPU-E013",
    ),
    Scenario(
        "kernel without any NPU driver",
        "home-assistant operating-system 3089",
        healthy(
            unbound("fdab0000.npu", "rockchip,rk3588-rknpu"),
            "/proc/config.gz gz CONFIG_ROCKCHIP_IOMMU=y CONFIG_IOMMU_API=y",
            "- /sys/kernel/debug/rknpu",
        ),
        "NPU-K003",
        never=("NPU-E010", "NPU-K004"),
    ),
    Scenario(
        "node closed to the user (0600 root)",
        "rknn-toolkit2 68, 49, 244, 257; rknn-toolkit 454",
        healthy("/dev/dri/renderD129 char 226:129 0600 0:0", "/dev/dri/card1 char 226:1 0600 0:0"),
        "NPU-E010",
        never=("NPU-K003", "NPU-K004", "NPU-E014"),
    ),
    Scenario(
        "user not in group render",
        "rknn-toolkit2 468, 536",
        healthy("live uid=1001 gids=1001 machine=aarch64"),
        "NPU-E010",
    ),
    Scenario(
        "container that masks /proc/device-tree",
        "rknn-toolkit2 33; rknpu2 114",
        healthy(MASKED_TREE),
        "NPU-E020",
    ),
    Scenario(
        "Kubernetes pod with the node and no device tree",
        "rk-llama.cpp 19",
        healthy(MASKED_TREE, "- /.dockerenv", "env KUBERNETES_SERVICE_HOST=10.0.0.1"),
        "NPU-E020",
    ),
    Scenario(
        "add-on container without /dev/dri and debugfs",
        "frigate-hass-addons 145; frigate 8382, 21259",
        healthy(NO_DRM_IN_CONTAINER),
        "NPU-E011",
    ),
    Scenario(
        "rocket driver with librknnrt installed",
        "ollama 5001; rkllama 97, 123",
        (samples.ROCKET, LIBRARY.format("2.3.2")),
        "NPU-K001",
        never=("NPU-V001", "NPU-V005", "NPU-E010"),
    ),
    Scenario(
        "harmless boot lines beside a running driver",
        "llama.cpp 722; rockchip-linux kernel 371",
        healthy(BOOT_NUMBERS),
        CLEAN,
        also=("NPU-K090",),
    ),
    Scenario(
        "RK3566 without a listed NPU regulator",
        "linux-rockchip 297; fnnas 514",
        (
            RK356X,
            "- /sys/class/regulator",
            "/sys/module/rknpu/version = 0.9.8",
            LIBRARY.format("2.3.2"),
            "- dmesg",
            "- /sys/kernel/debug/rknpu/version",
        ),
        CLEAN,
        also=("NPU-K014",),
    ),
    Scenario(
        "RK3568 hangs in the power domain of the NPU",
        "linux-rockchip 297",
        (RK356X, "dmesg rockchip-pm-domain: failed to get ack on domain 'npu', val=0x1"),
        "NPU-K010",
    ),
    Scenario(
        "NPU disabled in the device tree, vendor kernel",
        "radxa docs 1383, 1593; linux-rockchip 334",
        healthy(
            unbound("fdab0000.npu", "rockchip,rk3588-rknpu"),
            "- /sys/devices/platform/fdab0000.npu",
            "- /sys/bus/platform/devices/fdab0000.npu",
            DTBO,
        ),
        "NPU-K002",
    ),
    Scenario(
        "three rocket nodes disabled, mainline kernel",
        "mainline NPU status notes",
        (
            samples.ROCKET,
            (
                "- /sys/devices/platform\n- /sys/bus/platform/devices\n- /sys/class/accel\n- /dev/accel\n- "
                "/proc/modules\n- dmesg\n"
                "/sys/bus/platform/devices/serial8250 dir"
            ),
            "\n".join(f"/proc/device-tree/npu@{at}/status = disabled\\0" for at in CORES),
        ),
        "NPU-K002",
    ),
    Scenario(
        "no memory clock scaling, boot firmware too old",
        "rknn-llm 532; edk2-rk3588 205",
        healthy("- /sys/class/devfreq/dmc", "- dmesg", "dmesg rockchip-dmc dmc: current ATF version 0x0"),
        "NPU-P010",
        never=("NPU-P013",),
    ),
    Scenario(
        "no memory clock scaling for another reason",
        "Orange Pi 5 Plus review",
        healthy("- /sys/class/devfreq/dmc", "- dmesg"),
        CLEAN,
        also=("NPU-P013",),
    ),
    Scenario(
        "governors at powersave",
        "taOS 361, 509; rknn-llm 27, 29",
        healthy(rk3588_cpus(2400000, 2400000, "powersave")),
        "NPU-P012",
    ),
    Scenario(
        "NPU parked at 200 MHz while it works",
        "tgoskits 1908",
        healthy(
            "- /sys/kernel/debug/clk/clk_summary",
            "- /sys/kernel/debug/rknpu/load",
            "/sys/kernel/debug/clk/clk_summary =  scmi_clk_npu  1  1  0  200000000  0  0  50000  Y",
            "/sys/kernel/debug/rknpu/load = NPU load:  Core0: 97%, Core1: 96%, Core2: 98%,",
        ),
        "NPU-P011",
    ),
    Scenario(
        "container without /run/udev",
        "pyudev 225, 362; toolbox 468",
        healthy("- /run/udev", "/.dockerenv dir"),
        CLEAN,
    ),
    Scenario(
        "librknnrt in the multiarch directory",
        "libsoc 70; aerospike-client-c 4",
        healthy("- /usr/lib/librknnrt.so", LIBRARY.format("2.3.2").replace("/usr/lib/", "/usr/lib/aarch64-linux-gnu/")),
        CLEAN,
        never=("NPU-V012",),
    ),
    Scenario(
        "driver 0.9.6: same ioctl size, other struct",
        "notes on rk3588 (allbilly)",
        healthy(with_driver("0.9.6")),
        CLEAN,
        also=("NPU-V009",),
    ),
    Scenario(
        "no IOMMU and 16 MiB of CMA",
        "rknn-llm 68, 232, 195, 335; rknn-toolkit2 44",
        healthy(
            "- dmesg",
            "dmesg RKNPU fdab0000.npu: RKNPU: rknpu iommu is disabled, using non-iommu mode",
            meminfo(16000000, 16384, 12000),
        ),
        "NPU-M010",
    ),
    Scenario(
        "load file closed to the user",
        "rknpu-exporter; rknputop",
        healthy(),
        CLEAN,
    ),
)
