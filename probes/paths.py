# SPDX-License-Identifier: Apache-2.0
"""Every path that the environment half of the kit may look at, with what it is read for.

One table, so that a test can state what is never touched. ``*`` stands for one path component or a part of one. The
directories on the way to a listed path may be listed, and nothing else. ``NEVER`` is checked as well, after symbolic
links have been followed: those files wake the NPU, change its state when read, or are no plain files.

Sources: the vendor driver 0.9.8 (``freq`` and ``volt`` of its debugfs directory take the clock and regulator path and
resume the NPU for about three seconds; reads of its register pages hard-lock RK3588, so no device is ever read).
"""

from __future__ import annotations

import re
from functools import lru_cache

_DEVFREQ = (
    "cur_freq",
    "min_freq",
    "max_freq",
    "available_frequencies",
    "governor",
    "available_governors",
    "trans_stat",
)
_CPUFREQ = (
    "related_cpus",
    "scaling_cur_freq",
    "cpuinfo_max_freq",
    "scaling_min_freq",
    "scaling_max_freq",
    "scaling_governor",
    "scaling_available_governors",
    "scaling_available_frequencies",
)


def _each(prefix: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{prefix}/{name}" for name in names)


ALLOWED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "board and SoC identity",
        (
            "/proc/device-tree/compatible",
            "/proc/device-tree/model",
            "/sys/firmware/devicetree/base/compatible",
            "/sys/firmware/devicetree/base/model",
            "/sys/bus/nvmem/devices/rockchip-otp*/nvmem",
        ),
    ),
    (
        "distribution and image",
        (
            "/etc/os-release",
            "/usr/lib/os-release",
            "/etc/armbian-release",
            "/etc/orangepi-release",
            "/etc/rsdk-release",
            "/etc/radxa_image_fingerprint",
        ),
    ),
    (
        "kernel and its options",
        (
            "/proc/sys/kernel/osrelease",
            "/proc/cmdline",
            "/proc/config.gz",
            "/boot/config-*",
            "/proc/uptime",
            "/proc/modules",
            "/lib/modules/*/modules.builtin",
            "/lib/modules/*/modules.dep",
            "/etc/modprobe.d/*",
        ),
    ),
    (
        "NPU stack",
        (
            "/proc/device-tree/npu@*/status",
            "/proc/device-tree/npu@*/compatible",
            "/proc/device-tree/soc/npu@*/status",
            "/proc/device-tree/soc/npu@*/compatible",
            "/sys/bus/platform/devices/*.npu/uevent",
            "/sys/bus/platform/devices/*.npu/driver",
            "/sys/bus/platform/devices/*.npu/iommu_group",
            "/sys/bus/platform/devices/*.npu/waiting_for_supplier",
            "/sys/bus/platform/devices/*.npu/power/runtime_status",
            "/sys/class/drm/*/uevent",
            "/sys/class/drm/*/device",
            "/sys/class/drm/*/device/uevent",
            "/sys/class/accel/*/device",
            "/sys/class/accel/*/device/uevent",
            "/sys/class/misc/rknpu",
            "/sys/module/rknpu/version",
            "/sys/module/rknpu/parameters/*",
            "/sys/module/rocket",
            "/sys/kernel/debug/devices_deferred",
        ),
    ),
    (
        "device nodes: their metadata only, never opened for reading",
        ("/dev/rknpu", "/dev/dri/*", "/dev/dri/by-path/*", "/dev/accel/*", "/dev/dma_heap/*", "/dev/rk_dma_heap/*"),
    ),
    ("group names of device nodes", ("/etc/group",)),
    (
        "vendor driver counters that do not wake the NPU",
        (
            "/sys/kernel/debug/rknpu/version",
            "/sys/kernel/debug/rknpu/load",
            "/sys/kernel/debug/rknpu/power",
            "/sys/kernel/debug/rknpu/mm",
            "/proc/rknpu/version",
            "/proc/rknpu/load",
            "/proc/rknpu/power",
            "/proc/rknpu/mm",
        ),
    ),
    (
        "clocks of NPU, memory and processors",
        (
            *_each("/sys/class/devfreq/*", _DEVFREQ),
            *_each("/sys/bus/platform/devices/*/devfreq/*", _DEVFREQ),
            "/sys/class/devfreq/dmc/load",
            "/sys/kernel/debug/clk/clk_summary",
            "/sys/class/regulator/*/name",
            "/sys/class/regulator/*/microvolts",
            "/sys/class/regulator/*/state",
        ),
    ),
    (
        "IOMMU and DMA memory",
        (
            "/sys/kernel/iommu_groups/*/type",
            "/proc/meminfo",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/kernel/debug/swiotlb/io_tlb_nslabs",
        ),
    ),
    (
        "memory controller",
        (
            "/proc/dmcdbg/dmcinfo",
            "/sys/bus/event_source/devices/rockchip_ddr/type",
            "/proc/sys/kernel/perf_event_paranoid",
        ),
    ),
    (
        "processors",
        (
            "/proc/cpuinfo",
            "/sys/devices/system/cpu/present",
            "/sys/devices/system/cpu/online",
            "/sys/devices/system/cpu/cpu*/regs/identification/midr_el1",
            "/sys/devices/system/cpu/cpu*/cpu_capacity",
            "/sys/devices/system/cpu/cpu*/cache/index*/level",
            "/sys/devices/system/cpu/cpu*/cache/index*/size",
            "/sys/devices/system/cpu/cpu*/cpuidle/state1/disable",
            *_each("/sys/devices/system/cpu/cpufreq/policy*", _CPUFREQ),
        ),
    ),
    (
        "temperatures and cooling",
        (
            "/sys/class/thermal/thermal_zone*/type",
            "/sys/class/thermal/thermal_zone*/temp",
            "/sys/class/thermal/thermal_zone*/trip_point_*",
            "/sys/class/thermal/cooling_device*/type",
            "/sys/class/thermal/cooling_device*/cur_state",
            "/sys/class/thermal/cooling_device*/max_state",
        ),
    ),
    (
        "interrupts",
        ("/proc/interrupts", "/proc/irq/*/smp_affinity_list", "/proc/irq/*/effective_affinity_list"),
    ),
    (
        "limits and load",
        (
            "/proc/self/limits",
            "/proc/self/status",
            "/proc/loadavg",
            "/proc/sys/fs/file-max",
            "/proc/sys/fs/file-nr",
            "/proc/sys/fs/nr_open",
            "/proc/sys/vm/max_map_count",
            "/proc/sys/vm/overcommit_memory",
        ),
    ),
    ("who holds the NPU", ("/proc/*/fd/*", "/proc/*/comm")),
    ("kernel log", ("/var/log/dmesg",)),
    (
        "container or not",
        (
            "/.dockerenv",
            "/run/.containerenv",
            "/run/systemd/container",
            "/proc/1/cgroup",
            "/run/secrets/kubernetes.io",
            "/run/udev",
        ),
    ),
)

NEVER: tuple[str, ...] = (
    "/sys/kernel/debug/rknpu/freq",
    "/sys/kernel/debug/rknpu/volt",
    "/sys/kernel/debug/rknpu/reset",
    "/sys/kernel/debug/rknpu/delayms",
    "/proc/rknpu/freq",
    "/proc/rknpu/volt",
    "/proc/rknpu/reset",
    "/proc/kmsg",
    "/proc/kcore",
    "/dev/*",
    "/dev/*/*",
    "/dev/*/*/*",
    "/proc/*/mem",
    "/proc/*/environ",
)
"""Contents never read, even where a symbolic link in an allowed place leads there."""


def _pattern(globs: tuple[str, ...]) -> re.Pattern[str]:
    parts = (re.escape(glob).replace(r"\*", "[^/]*") for glob in globs)
    return re.compile("|".join(f"(?:{part})" for part in parts))


@lru_cache(maxsize=1)
def _tables() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    files = tuple(glob for _, globs in ALLOWED for glob in globs)
    parents = {"/"}
    for glob in files:
        parts = glob.split("/")
        parents.update("/".join(parts[:end]) for end in range(2, len(parts)))
    return _pattern(files), _pattern((*files, *sorted(parents))), _pattern(NEVER)


def may_read(path: str) -> bool:
    """Whether the content of ``path`` is on the list."""
    return _tables()[0].fullmatch(path) is not None and not never_read(path)


def may_look(path: str) -> bool:
    """Whether ``path`` may be listed, or its metadata taken: it, or something below it, is on the list."""
    return _tables()[1].fullmatch(path) is not None


def never_read(path: str) -> bool:
    """Whether the content of ``path`` (links already followed) must not be read."""
    return _tables()[2].fullmatch(path) is not None
