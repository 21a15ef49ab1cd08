# SPDX-License-Identifier: Apache-2.0

"""Groups of lines that several sample boards share: processors, identity, the NPU of vendor kernels, boot lines."""

from __future__ import annotations

from tests.board.tree import cpus, drm, interrupts, npu_device, zones

A55, A76 = "0x00000000412fd050", "0x00000000414fd0b0"
A53, A72 = "0x00000000410fd034", "0x00000000411fd080"
LITTLE = [408000, 600000, 816000, 1008000, 1200000, 1416000, 1608000, 1800000]
BIG = [*LITTLE, 2016000, 2208000]
NPU_3588 = "300000000 400000000 500000000 600000000 700000000 800000000 900000000 1000000000"
VENDOR = "rknpu_ondemand userspace powersave performance simple_ondemand"
VENDOR_CONFIG = (
    "/proc/config.gz gz CONFIG_ROCKCHIP_RKNPU=y CONFIG_ROCKCHIP_RKNPU_DEBUG_FS=y CONFIG_ROCKCHIP_RKNPU_DRM_GEM=y "
    "CONFIG_NO_GKI=y CONFIG_ROCKCHIP_IOMMU=y CONFIG_IOMMU_API=y"
)
RKNPU_UEVENT = (
    "DRIVER=RKNPU\\nOF_NAME=npu\\nOF_FULLNAME=/npu@{at}\\nOF_COMPATIBLE_0=rockchip,{soc}-rknpu\\nOF_COMPATIBLE_N=1"
)
CLOSED_DEBUGFS = """
/sys/kernel/debug/rknpu/version ! permission denied
/sys/kernel/debug/rknpu/load ! permission denied
/sys/kernel/debug/rknpu/power ! permission denied
/sys/kernel/debug/rknpu/mm ! permission denied
/sys/kernel/debug/clk/clk_summary ! permission denied
/sys/kernel/debug/devices_deferred ! permission denied
"""


def rk3588_cpus(big0: int, big1: int, governor: str = "ondemand") -> str:
    return cpus(
        {
            0: ([0, 1, 2, 3], A55, governor, LITTLE, "397"),
            4: ([4, 5], A76, governor, [*BIG, big0], "1024"),
            6: ([6, 7], A76, governor, [*BIG, big1], "1024"),
        }
    )


def identity(model: str, compatible: str, kernel: str, system: str = "Ubuntu 22.04 LTS") -> str:
    entries = "".join(f"{entry}\\0" for entry in compatible.split())
    return f"""
/proc/device-tree/model = {model}\\0
/proc/device-tree/compatible = {entries}
/proc/sys/kernel/osrelease = {kernel}
/etc/os-release = NAME="{system.partition(" ")[0]}"\\nID={system.partition(" ")[0].lower()}\\nPRETTY_NAME="{system}"
"""


def vendor_npu(at: str, soc: str, card: int, render: int, group: int | None = 0) -> str:
    uevent = RKNPU_UEVENT.format(at=at, soc=soc)
    device = npu_device(f"{at}.npu", "RKNPU", f"rockchip,{soc}-rknpu", group, power__runtime_status="suspended")
    return "\n".join(
        [
            device,
            drm(f"card{card}", card, f"platform/{at}.npu", uevent, gid=44),
            drm(f"renderD{render}", render, f"platform/{at}.npu", uevent),
        ]
    )


def display(render: int, card: int = 0, driver: str = "rockchip-drm", device: str = "display-subsystem") -> str:
    uevent = f"DRIVER={driver}\\nOF_NAME={device}"
    return "\n".join(
        [
            drm(f"card{card}", card, f"platform/{device}", uevent, gid=44),
            drm(f"renderD{render}", render, f"platform/{device}", uevent),
        ]
    )


BOOT_3588 = """
dmesg vdd_npu_s0: 550 <--> 950 mV at 800 mV, enabled
dmesg RKNPU fdab0000.npu: Adding to iommu group 0
dmesg RKNPU fdab0000.npu: RKNPU: rknpu iommu is enabled, using iommu mode
dmesg RKNPU fdab0000.npu: can't request region for resource [mem 0xfdab0000-0xfdabffff]
dmesg RKNPU fdab0000.npu: can't request region for resource [mem 0xfdac0000-0xfdacffff]
dmesg RKNPU fdab0000.npu: can't request region for resource [mem 0xfdad0000-0xfdadffff]
"""
BOOT_NUMBERS = """
dmesg vdd_npu_s0: could not add device link fdab0000.npu: -EEXIST
dmesg RKNPU fdab0000.npu: RKNPU: bin=0
dmesg RKNPU fdab0000.npu: leakage=6
dmesg RKNPU fdab0000.npu: pvtm=826
dmesg RKNPU fdab0000.npu: pvtm-volt-sel=1
dmesg RKNPU fdab0000.npu: avs=0
dmesg RKNPU fdab0000.npu: l=15000 h=85000 hyst=5000 l_limit=0 h_limit=800000000 h_table=0
dmesg RKNPU fdab0000.npu: failed to find power_model node
dmesg RKNPU fdab0000.npu: RKNPU: failed to initialize power model
dmesg RKNPU fdab0000.npu: RKNPU: failed to get dynamic-coefficient
"""
ZONES_3588 = zones(
    ("npu-thermal", 40700),
    ("center-thermal", 39800),
    ("bigcore1-thermal", 40100),
    ("soc-thermal", 40100),
    ("gpu-thermal", 39800),
    ("littlecore-thermal", 40100),
    ("bigcore0-thermal", 40100),
)
IRQ_VENDOR = interrupts(
    8, [(number, [3, 0, 0, 0, 0, 0, 0, 0], "fdab9000.iommu, fdab0000.npu") for number in (40, 41, 42)]
)
