# SPDX-License-Identifier: Apache-2.0

"""Boards as tables. Values come from public logs of those boards; the shape of the trees is composed.

Sources named per board: sbc-bench results (SBC and the id), rknpu-rk3588 porting journal (ANT), kernel logs in public
issues. Serial numbers and names are invented.
"""

from __future__ import annotations

from tests.board.parts import (
    A53,
    A55,
    A72,
    A76,
    BIG,
    BOOT_3588,
    BOOT_NUMBERS,
    CLOSED_DEBUGFS,
    IRQ_VENDOR,
    LITTLE,
    NPU_3588,
    VENDOR,
    VENDOR_CONFIG,
    ZONES_3588,
    display,
    identity,
    rk3588_cpus,
    vendor_npu,
)
from tests.board.tree import GENERIC, cpus, devfreq, drm, interrupts, meminfo, npu_device, regulator, zones

ORANGEPI5_PLUS = "\n".join(
    [
        GENERIC,
        identity("Orange Pi 5 Plus", "rockchip,rk3588-orangepi-5-plus rockchip,rk3588", "5.10.0-1012-rockchip"),
        VENDOR_CONFIG,
        rk3588_cpus(2304000, 2352000),
        display(128),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "performance", 1000000000, NPU_3588, VENDOR),
        "/sys/class/devfreq/fdab0000.npu/load = 100@1000000000Hz",
        regulator(34, "vdd_npu_s0", 800000),
        meminfo(16000000, 8192, 0),
        "/sys/bus/nvmem/devices/rockchip-otp0/nvmem hex 52 4b 35 88 12 fe 21 41 00 00 00 00 00 00 00 00",
        "/sys/module/rknpu/version = 0.9.6",
        "/usr/lib/librknnrt.so lib librknnrt version: 1.5.2 (0123456789@2023-08-23)",
        BOOT_3588,
        "dmesg [drm] Initialized rknpu 0.9.6 20240322 for fdab0000.npu on minor 1",
        BOOT_NUMBERS,
        ZONES_3588,
        IRQ_VENDOR,
        CLOSED_DEBUGFS,
    ]
)

ORANGEPI5_NIXOS = "\n".join(
    [
        GENERIC,
        identity(
            "Orange Pi 5", "rockchip,rk3588s-orangepi-5 rockchip,rk3588s rockchip,rk3588", "5.10.160", "NixOS 23.05"
        ),
        rk3588_cpus(2304000, 2304000),
        display(128),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "rknpu_ondemand", 1000000000, NPU_3588, VENDOR),
        devfreq("dmc", "dmc_ondemand", 2112000000, "528000000 1068000000 1560000000 2112000000"),
        meminfo(8000000, 16384, 8000),
        BOOT_3588,
        "dmesg [drm] Initialized rknpu 0.8.5 20230202 for fdab0000.npu on minor 1",
        "dmesg RKNPU fdab0000.npu: pvtm=866",
        "dmesg RKNPU fdab0000.npu: leakage=8",
        "dmesg rockchip-dmc dmc: current ATF version 0x100",
        "dmesg rockchip-dmc dmc: normal_rate = 1560000000",
        ZONES_3588,
        CLOSED_DEBUGFS,
    ]
)

ORANGEPI5_MAX = "\n".join(
    [
        GENERIC,
        identity("Orange Pi 5 Max", "rockchip,rk3588-orangepi-5-max rockchip,rk3588", "6.1.43-rockchip-rk3588"),
        VENDOR_CONFIG,
        rk3588_cpus(2256000, 2256000),
        display(128),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "rknpu_ondemand", 1000000000, NPU_3588, VENDOR),
        devfreq(
            "dmc", "dmc_ondemand", 534000000, "534000000 1320000000 1968000000 2400000000", "dmc_ondemand performance"
        ),
        (
            "/sys/class/devfreq/dmc/trans_stat = "
            "     From  :   To\\n           : 534000000132000000019680000002400000000   time(ms)\\n"
            "  534000000:         0         0         0        12    438923\\n"
            " 1320000000:         7         0         0         0      1660\\n"
            " 1968000000:         2         0         0         0       136\\n"
            "*2400000000:         3         7         2         0   1413100\\nTotal transition : 33"
        ),
        "/proc/cmdline = root=UUID=00000000-0000-0000-0000-000000000000 cma=128M",
        regulator(12, "vdd_npu_s0", 812500),
        meminfo(8058000, 131072, 100000),
        "/sys/bus/nvmem/devices/rockchip-otp0/nvmem hex 52 4b 35 88 12 fe 21 41 00 00 00 00 00 00 00 00",
        "/sys/module/rknpu/version = 0.9.6",
        BOOT_3588,
        "dmesg rockchip-cpuinfo cpuinfo: SoC            : 35880000",
        "dmesg [drm] Initialized rknpu 0.9.6 20240322 for fdab0000.npu on minor 1",
        "dmesg cpu cpu0: leakage=9",
        "dmesg cpu cpu0: pvtm=1453",
        "dmesg cpu cpu0: pvtm-volt-sel=2",
        "dmesg cpu cpu4: pvtm=1697",
        "dmesg cpu cpu4: pvtm-volt-sel=4",
        "dmesg rockchip-dmc dmc: leakage=32",
        "dmesg RKNPU fdab0000.npu: leakage=8",
        ZONES_3588,
        CLOSED_DEBUGFS,
    ]
)

ROCK5B = "\n".join(
    [
        GENERIC,
        identity("Radxa ROCK 5B", "radxa,rock-5b rockchip,rk3588", "5.10.110-rockchip-rk3588", "Armbian 23.02"),
        VENDOR_CONFIG,
        rk3588_cpus(2400000, 2400000),
        display(128),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "rknpu_ondemand", 1000000000, NPU_3588, VENDOR),
        devfreq("dmc", "dmc_ondemand", 528000000, "528000000 1068000000 1560000000 2112000000"),
        regulator(20, "vdd_npu_s0", 787500),
        meminfo(16000000, 16384, 9000),
        BOOT_3588,
        "dmesg [drm] Initialized rknpu 0.8.2 20220829 for fdab0000.npu on minor 1",
        ZONES_3588,
        CLOSED_DEBUGFS,
    ]
)

ROCK5B_61 = "\n".join(
    [
        GENERIC,
        identity("Radxa ROCK 5B", "radxa,rock-5b rockchip,rk3588", "6.1.115-vendor-rk35xx", "Armbian 25.2"),
        VENDOR_CONFIG,
        rk3588_cpus(2400000, 2400000),
        display(128),
        display(130, 2, "panthor", "fb000000.gpu"),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "rknpu_ondemand", 1000000000, NPU_3588, VENDOR),
        devfreq("dmc", "dmc_ondemand", 2112000000, "528000000 1068000000 1560000000 2112000000"),
        "/proc/cmdline = androidboot.fwver=ddr-v1.16-9fffbe1e78,bl31-v1.45,uboot-2017.09",
        "/etc/armbian-release = BOARD=rock-5b\\nVERSION=25.2.1\\nBRANCH=vendor",
        meminfo(16000000, 16384, 9000),
        "/sys/module/rknpu/version = 0.9.8",
        "/usr/lib/librknnrt.so lib librknnrt version: 2.3.2 (429f97ae6b@2025-04-09T09:09:27)",
        BOOT_3588,
        "dmesg [drm] Initialized rknpu 0.9.8 20240828 for fdab0000.npu on minor 1",
        "dmesg rockchip-dmc dmc: current ATF version 0x100",
        ZONES_3588,
        CLOSED_DEBUGFS,
    ]
)

NPU_3576 = "300000000 400000000 500000000 600000000 700000000 800000000 900000000 950000000"
ROCK4D = "\n".join(
    [
        GENERIC,
        identity(
            "Radxa ROCK 4D",
            "radxa,rock-4d-spi radxa,rock-4d rockchip,rk3576",
            "6.1.84-8-rk2410-nocsf",
            "Debian GNU/Linux 12",
        ),
        VENDOR_CONFIG,
        cpus(
            {
                0: ([0, 1, 2, 3], A53, "ondemand", [408000, 1200000, 2016000], "485"),
                4: ([4, 5, 6, 7], A72, "ondemand", [408000, 1200000, 2208000], "1024"),
            }
        ),
        display(128),
        vendor_npu("27700000", "rk3576", 1, 129),
        devfreq("27700000.npu", "rknpu_ondemand", 300000000, NPU_3576, "powersave performance rknpu_ondemand"),
        devfreq("dmc", "dmc_ondemand", 534000000, "534000000 1320000000 1968000000 2736000000"),
        devfreq("27d00000.vop", "vop2_ondemand", 500000000, "500000000 594000000 702000000"),
        devfreq("27800000.gpu", "simple_ondemand", 300000000, "300000000 900000000"),
        (
            "/sys/class/devfreq/dmc/trans_stat = "
            "     From  :   To\\n           : 534000000132000000019680000002736000000   time(ms)\\n"
            "* 534000000:         0         0         0       127   1665752\\n"
            " 1320000000:       109         0         0         7     38448\\n"
            " 1968000000:         9        51         0         0     10764\\n"
            " 2736000000:        10        65        60         0    203784\\nTotal transition : 438"
        ),
        "/proc/cmdline = androidboot.fwver=ddr-v1.08-fcb0cfd52f,bl31-v1.19,uboot-17.09-47-5-05/26/2025",
        regulator(7, "vdd_npu_s0", 725000),
        meminfo(8000000, 16384, 9000),
        "/sys/bus/nvmem/devices/rockchip-otp0/nvmem hex 52 4b 35 76 22 00 ff 00 01 01 00 00 00 00 00 00",
        "/sys/module/rknpu/version = 0.9.8",
        "dmesg RKNPU 27700000.npu: RKNPU: rknpu iommu is enabled, using iommu mode",
        "dmesg RKNPU 27700000.npu: RKNPU: nbuf region: [0x000000003fe80000, 0x000000003ff80000), nbuf size: 0x100000",
        "dmesg [drm] Initialized rknpu 0.9.8 20240828 for 27700000.npu on minor 1",
        "dmesg RKNPU 27700000.npu: leakage=5",
        zones(
            ("soc-thermal", 45000),
            ("bigcore-thermal", 46000),
            ("little-core-thermal", 45000),
            ("ddr-thermal", 44000),
            ("npu-thermal", 44000),
            ("gpu-thermal", 45000),
        ),
        CLOSED_DEBUGFS,
    ]
)

NPU_356X = "200000000 297000000 400000000 600000000 700000000 800000000 900000000"
ORANGEPI3B = "\n".join(
    [
        GENERIC,
        identity(
            "Rockchip RK3566 OPi 3B",
            "rockchip,rk3566-orangepi-3b rockchip,rk3566",
            "5.10.160-rockchip-rk356x",
            "Orange Pi 1.0.6",
        ),
        VENDOR_CONFIG,
        cpus({0: ([0, 1, 2, 3], A55, "performance", [408000, 600000, 816000, 1104000, 1416000, 1608000, 1800000], "")}),
        display(128),
        vendor_npu("fde40000", "rk3568", 1, 129),
        devfreq("fde40000.npu", "performance", 900000000, NPU_356X, "rknpu_ondemand userspace performance"),
        regulator(3, "vdd_npu", 900000),
        meminfo(2000000, 16384, 9000),
        "/sys/module/rknpu/version = 0.8.8",
        "dmesg rockchip-cpuinfo cpuinfo: SoC            : 35662000",
        "dmesg RKNPU fde40000.npu: RKNPU: rknpu iommu is enabled, using iommu mode",
        "dmesg [drm] Initialized rknpu 0.8.8 20230428 for fde40000.npu on minor 1",
        "dmesg RKNPU fde40000.npu: leakage=4",
        "dmesg rockchip,bus bus-npu: Failed to get leakage",
        "live uid=0 gids=0 machine=aarch64",
        "/sys/kernel/debug/rknpu/load = NPU load:  0%",
        "/sys/kernel/debug/rknpu/version = RKNPU driver: v0.8.8",
        "/sys/kernel/debug/rknpu/power = off",
        "/sys/kernel/debug/clk/clk_summary =  clk_scmi_npu  0  1  0  900000000  0  0  50000",
        zones(("soc-thermal", 62000), ("gpu-thermal", 60000)),
    ]
)

MAINLINE_CONFIG = "/proc/config.gz gz CONFIG_ROCKCHIP_IOMMU=y CONFIG_IOMMU_API=y CONFIG_DRM_ACCEL=y"
ORANGEPI3B_DKMS = "\n".join(
    [
        GENERIC,
        identity("Xunlong Orange Pi 3B", "xunlong,orangepi-3b rockchip,rk3566", "6.19.0-dietpi", "DietPi 9"),
        MAINLINE_CONFIG,
        cpus({0: ([0, 1, 2, 3], A55, "schedutil", [408000, 1800000], "1024")}),
        vendor_npu("fde40000", "rk3568", 1, 128, group=None),
        "/proc/modules = rknpu 200704 0 - Live 0x0000000000000000 (O)",
        "/sys/module/rknpu/version = 0.9.8",
        regulator(3, "vdd_npu", 900000),
        meminfo(2000000, 262144, 200000),
        "dmesg rknpu: loading out-of-tree module taints kernel.",
        "dmesg RKNPU fde40000.npu: RKNPU: rknpu iommu device-tree entry not found!, using non-iommu mode",
        "dmesg [drm] Initialized rknpu 0.9.8 for fde40000.npu on minor 1",
        "dmesg RKNPU fde40000.npu: RKNPU: devfreq enabled, initial freq: 594000000 Hz, volt: 900000 uV",
        zones(("cpu-thermal", 50000), ("gpu-thermal", 49000)),
        CLOSED_DEBUGFS,
    ]
)

ZONES_MAINLINE = zones(
    ("package-thermal", 41000),
    ("bigcore0-thermal", 41000),
    ("bigcore2-thermal", 41000),
    ("littlecore-thermal", 41000),
    ("center-thermal", 41000),
    ("gpu-thermal", 41000),
    ("npu-thermal", 41000),
)
ROCKET_CORES = "\n".join(
    npu_device(
        f"{at}.npu",
        "rocket",
        "rockchip,rk3588-rknn-core",
        group,
        power__runtime_status="suspended",
        power__autosuspend_delay_ms="50",
    )
    for at, group in (("fdab0000", 7), ("fdac0000", 8), ("fdad0000", 9))
)
ROCKET_NODE = """
/sys/class/accel/accel0 -> ../../devices/platform/rknn/accel/accel0
/sys/devices/platform/rknn/accel/accel0/uevent = MAJOR=261\\nMINOR=0\\nDEVNAME=accel/accel0\\nDEVTYPE=accel_minor
/sys/devices/platform/rknn/accel/accel0/device -> ../../../rknn
/sys/devices/platform/rknn/uevent = DRIVER=rocket\\nMODALIAS=platform:rknn
/dev/accel/accel0 char 261:0 0666 0:109
"""
ROCKET = "\n".join(
    [
        GENERIC,
        identity("Xunlong Orange Pi 5 Plus", "xunlong,orangepi-5-plus rockchip,rk3588", "6.18.0", "NixOS 25.11"),
        "/proc/config.gz gz CONFIG_DRM_ACCEL_ROCKET=m CONFIG_ROCKCHIP_IOMMU=y CONFIG_IOMMU_API=y CONFIG_DRM_ACCEL=y",
        rk3588_cpus(2256000, 2256000, "schedutil"),
        display(128, 0, "panthor", "fb000000.gpu"),
        ROCKET_CORES,
        ROCKET_NODE,
        devfreq("fb000000.gpu", "simple_ondemand", 300000000, "300000000 1000000000"),
        "/proc/modules = rocket 36864 0 - Live 0x0000000000000000",
        meminfo(16000000, 65536, 60000),
        "live uid=0 gids=0 machine=aarch64",
        "/sys/kernel/debug/clk/clk_summary =  scmi_clk_npu  3  3  0  200000000  0  0  50000  Y",
        "dmesg platform fdab0000.npu: Adding to iommu group 7",
        "dmesg [drm] Initialized rocket 0.0.0 for rknn on minor 0",
        "dmesg rocket fdab0000.npu: Rockchip NPU core 0 version: 1179210309",
        "dmesg rocket fdac0000.npu: Rockchip NPU core 1 version: 1179210309",
        "dmesg rocket fdad0000.npu: Rockchip NPU core 2 version: 1179210309",
        ZONES_MAINLINE,
    ]
)

ORANGEPI5_PRO_DKMS = "\n".join(
    [
        GENERIC,
        identity(
            "Xunlong Orange Pi 5 Pro",
            "xunlong,orangepi-5-pro rockchip,rk3588s",
            "6.18.22-current-rockchip64",
            "Armbian 26.2",
        ),
        MAINLINE_CONFIG,
        rk3588_cpus(2256000, 2256000),
        display(128, 0, "panthor", "fb000000.gpu"),
        display(130, 1),
        vendor_npu("fdab0000", "rk3588", 2, 129, group=None),
        "/proc/modules = rknpu 200704 0 - Live 0x0000000000000000 (O)",
        "/sys/module/rknpu/version = 0.9.8",
        devfreq("fdab0000.npu", "simple_ondemand", 200000000, "200000000 1000000000"),
        meminfo(8000000),
        interrupts(8, [(n, [0, 0, 0, 0, 9, 0, 0, 0], "fdab0000.npu") for n in (146, 147, 148)]),
        "dmesg rknpu: loading out-of-tree module taints kernel.",
        "dmesg RKNPU fdab0000.npu: RKNPU: rknpu iommu device-tree entry not found!, using non-iommu mode",
        "dmesg [drm] Initialized rknpu 0.9.8 for fdab0000.npu on minor 2",
        "dmesg RKNPU fdab0000.npu: RKNPU: devfreq enabled, initial freq: 200000000 Hz, volt: 800000 uV",
        ZONES_MAINLINE,
        CLOSED_DEBUGFS,
    ]
)

ORANGEPI5_PRO_BSP = "\n".join(
    [
        GENERIC,
        identity(
            "Orange Pi 5 Pro",
            "rockchip,rk3588s-orangepi-5-pro rockchip,rk3588s rockchip,rk3588",
            "6.1.0-1026-rockchip",
            "Ubuntu 24.04 LTS",
        ),
        (
            "/proc/config.gz gz CONFIG_ROCKCHIP_RKNPU=y CONFIG_ROCKCHIP_RKNPU_DRM_GEM=y CONFIG_CMA_SIZE_MBYTES=16 "
            "CONFIG_NO_GKI=y"
        ),
        rk3588_cpus(2304000, 2304000),
        display(128),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "rknpu_ondemand", 1000000000, NPU_3588, VENDOR),
        regulator(34, "vdd_npu_s0", 800000),
        meminfo(8000000, 8192, 0),
        "/dev/dma_heap/cma char 247:1 0660 0:44",
        "/dev/dma_heap/system char 247:0 0660 0:44",
        "live uid=0 gids=0 machine=aarch64",
        "/sys/kernel/debug/rknpu/version = RKNPU driver: v0.9.7",
        "/sys/kernel/debug/rknpu/load = NPU load:  Core0:  0%, Core1:  0%, Core2:  0%,",
        "/sys/kernel/debug/rknpu/power = off",
        "/sys/kernel/debug/clk/clk_summary =  scmi_clk_npu  0  0  0  200000000  0  0  50000  Y",
        "/sys/module/rknpu/version = 0.9.7",
        IRQ_VENDOR,
        BOOT_3588,
        "dmesg [drm] Initialized rknpu 0.9.7 20240424 for fdab0000.npu on minor 1",
        "dmesg RKNPU fdab0000.npu: leakage=10",
        "dmesg RKNPU fdab0000.npu: pvtm=877",
        "dmesg RKNPU fdab0000.npu: pvtm-volt-sel=3",
        ZONES_3588,
    ]
)

SPLIT_DKMS = "\n".join(
    [
        GENERIC,
        identity("Xunlong Orange Pi 5", "xunlong,orangepi-5 rockchip,rk3588s", "7.1.0", "Debian GNU/Linux 13"),
        MAINLINE_CONFIG,
        rk3588_cpus(2256000, 2256000),
        "\n".join(
            npu_device(f"{at}.npu", "RKNPU", "rockchip,rk3588-rknn-core", group)
            for at, group in (("fdab0000", 7), ("fdac0000", 8), ("fdad0000", 9))
        ),
        drm("card1", 1, "rknpu", "", gid=44),
        drm("renderD129", 129, "rknpu", ""),
        "drm /dev/dri/renderD129 rknpu 0.9.8 20240828",
        "/proc/modules = rknpu 200704 0 - Live 0x0000000000000000 (O)",
        "/sys/module/rknpu/version = 0.9.8",
        meminfo(16000000, 65536, 60000),
        interrupts(
            8,
            [
                (82, [46744, 0, 0, 0, 0, 0, 0, 0], "fdab9000.iommu, fdab0000.npu"),
                (83, [61146, 0, 0, 0, 0, 0, 0, 0], "fdaca000.iommu, fdac0000.npu"),
                (84, [5276, 0, 0, 0, 0, 0, 0, 0], "fdada000.iommu, fdad0000.npu"),
            ],
        ),
        "dmesg RKNPU fdab0000.npu: RKNPU: rknpu iommu is enabled, using iommu mode",
        "dmesg [drm] Initialized rknpu 0.9.8 for rknpu on minor 1",
        ZONES_MAINLINE,
        CLOSED_DEBUGFS,
    ]
)

LUCKFOX_PICO = "\n".join(
    [
        GENERIC,
        identity("Luckfox Pico Pro", "rockchip,rv1106g-38x38-ipc-v10 rockchip,rv1106", "5.10.110", "Buildroot 2023"),
        "live uid=0 gids=0 machine=armv7l",
        "/sys/devices/system/cpu/online = 0",
        "/sys/devices/system/cpu/present = 0",
        npu_device("ff660000.npu", "RKNPU", "rockchip,rv1106-rknpu", None),
        "/sys/class/misc/rknpu/uevent = MAJOR=10\\nMINOR=122\\nDEVNAME=rknpu",
        "/dev/rknpu char 10:122 0600 0:0",
        "/dev/rk_dma_heap/rk-dma-heap-cma char 250:0 0600 0:0",
        "/proc/rknpu/version = RKNPU driver: v0.9.2",
        "/proc/rknpu/load = NPU load:  0%",
        meminfo(240000, 67584, 60000),
        "dmesg Initialized RKNPU driver: v0.8.8 for 20230428",
    ]
).replace("v0.9.2", "v0.8.8")

ROCK5C_LITE = "\n".join(
    [
        GENERIC,
        identity(
            "Radxa ROCK 5C", "radxa,rock-5c rockchip,rk3588s rockchip,rk3588", "6.1.84-10-rk2410", "Debian GNU/Linux 12"
        ),
        VENDOR_CONFIG,
        cpus({0: ([0, 1, 2, 3], A55, "ondemand", LITTLE, ""), 4: ([4, 5], A76, "ondemand", BIG, "")}),
        display(128),
        vendor_npu("fdab0000", "rk3588", 1, 129),
        devfreq("fdab0000.npu", "rknpu_ondemand", 300000000, NPU_3588, VENDOR),
        devfreq("dmc", "dmc_ondemand", 2112000000, "528000000 1068000000 1560000000 2112000000"),
        meminfo(8000000, 16384, 9000),
        "/sys/module/rknpu/version = 0.9.8",
        BOOT_3588,
        "dmesg rockchip-cpuinfo cpuinfo: SoC            : 35821000",
        "dmesg [drm] Initialized rknpu 0.9.8 20240828 for fdab0000.npu on minor 1",
        ZONES_3588,
        CLOSED_DEBUGFS,
    ]
)

CORNERS = """
# Routes that no sample board needs: each must work all the same.
- /sys/class/devfreq/fdab0000.npu
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/cur_freq = 600000000
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/min_freq = 300000000
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/max_freq = 1000000000
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/available_frequencies = 300000000 1000000000
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/governor = performance
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/available_governors = performance
/sys/devices/platform/fdab0000.npu/devfreq/fdab0000.npu/trans_stat = * 600000000:         0    100
/proc/device-tree/soc/npu@27700000/compatible = rockchip,rk3576-rknn-core\\0
/proc/device-tree/soc/npu@27700000/status = disabled\\0
- /sys/kernel/debug/rknpu
/proc/rknpu/version = RKNPU driver: v0.9.8
/proc/rknpu/load = NPU load:  Core0:  3%, Core1:  0%, Core2:  0%,
/proc/rknpu/power = on
/proc/rknpu/mm = SRAM total size: 978944, used: 0, free: 978944
/proc/dmcdbg/dmcinfo = DramType: LPDDR4X\\nBus Width: 32 bit\\ncur_freq: 2112000000
/sys/module/rknpu/parameters/bypass_irq_handler = 0
/sys/bus/event_source/devices/rockchip_ddr/type = 14
/proc/sys/kernel/perf_event_paranoid = 2
/proc/uptime = 12345.67 9.0
/sys/devices/system/cpu/cpu0/cpuidle/state1/disable = 1
/sys/devices/system/cpu/cpu7/cache/index3/level = 3
/sys/devices/system/cpu/cpu7/cache/index3/size = 3072K
/sys/class/thermal/cooling_device0/type = thermal-devfreq-0
/sys/class/thermal/cooling_device0/cur_state = 2
/sys/class/thermal/cooling_device0/max_state = 8
/sys/kernel/debug/swiotlb/io_tlb_nslabs = 32768
/etc/radxa_image_fingerprint = build 7
holder 99 idle /dev/null
"""
