# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: E501  (a line of a table is a line of a file on the board)
"""Writes a fake root from a table: one line a file.

::

    /proc/device-tree/model = Orange Pi 5 Plus\\0      text; \\0 is NUL, a newline is added unless it ends with NUL
    /proc/config.gz gz CONFIG_A=y CONFIG_B=m           gzip of the words, one a line
    /sys/.../nvmem hex 52 4b 35 88                     bytes
    /sys/.../driver -> ../../drivers/RKNPU             symbolic link
    /sys/kernel/debug/rknpu/load ! permission denied   a refusal, as sysfs gives it to a user without rights
    /dev/dri/renderD129 char 226:129 0660 0:44         device node (in the manifest: no rights are needed)
    /some/pipe fifo                                    a real FIFO
    /some/dir dir                                      an empty directory
    /usr/lib/librknnrt.so lib librknnrt version: 2.3.2 (abc@2025)     a small ELF file with that text
    live uid=1000 gids=1000,44 machine=aarch64         who looks
    env KUBERNETES_SERVICE_HOST=10.0.0.1               environment of who looks
    drm /dev/dri/renderD130 rknpu 0.9.8 20240828       what DRM_IOCTL_VERSION answers
    holder 4711 rkllm_server /dev/dri/renderD129       a process with that file open
    closed /proc/812/fd                                open files of a process that this user may not see
    dmesg RKNPU fdab0000.npu: Adding to iommu group 0  a line of the kernel log
    # comment

A later line for the same path replaces an earlier one; ``- /path`` takes a path, and all below it, out again.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path
from typing import Any

GENERIC = """
/proc/self/status = Name:\\tpython3\\nUid:\\t1000\\t1000\\t1000\\t1000\\nGid:\\t1000\\t1000\\t1000\\t1000\\nGroups:\\t44 109 1000
/proc/self/limits = Limit Soft Hard Units\\nMax open files            65535                65535                files
/proc/1/cgroup = 0::/init.scope
/proc/modules =
/proc/loadavg = 0.10 0.05 0.01 1/200 4000
/proc/sys/vm/max_map_count = 65530
/proc/sys/fs/file-nr = 2016\\t0\\t9223372036854775807
/etc/group = root:x:0:\\nvideo:x:44:\\nrender:x:109:
/run/udev dir
/sys/bus/platform/devices/serial8250 dir
live uid=1000 gids=44,109,1000 machine=aarch64
"""


def build(root: Path, *tables: str) -> Path:
    """Write the tables, in order, below ``root`` and return it."""
    rows: dict[str, tuple[str, str]] = {}
    manifest: dict[str, Any] = {"nodes": {}, "refused": {}, "live": {"environ": {}, "drm": {}}}
    dmesg: list[str] = []
    for line in "\n".join(tables).splitlines():
        _take(line.strip(), rows, manifest, dmesg)
    root.mkdir(parents=True, exist_ok=True)
    for path, (kind, text) in rows.items():
        _write(root, path, kind, text, manifest)
    place = root / ".rknpu"
    place.mkdir()
    (place / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    if dmesg:
        stamped = [f"[{number + 1:5d}.000000] {line}" for number, line in enumerate(dmesg)]
        (place / "dmesg").write_text("\n".join(stamped) + "\n", encoding="utf-8")
    return root


def _take(line: str, rows: dict[str, tuple[str, str]], manifest: dict[str, Any], dmesg: list[str]) -> None:
    word, _, rest = line.partition(" ")
    if word in ("", "#") or line.startswith("#"):
        return
    if word == "-":
        for path in [path for path in rows if path == rest or path.startswith(rest + "/")]:
            del rows[path]
        if rest == "dmesg":
            dmesg.clear()
    elif word == "dmesg":
        dmesg.append(rest)
    elif word in ("live", "env", "drm"):
        _take_call(word, rest, manifest["live"])
    elif word == "closed":
        manifest["refused"][f"holders {rest}"] = ["permission denied", ""]
    elif word == "holder":
        pid, name, node = rest.split()
        rows[f"/proc/{pid}/comm"] = ("=", name)
        rows[f"/proc/{pid}/fd/0"] = ("->", "/dev/null")
        rows[f"/proc/{pid}/fd/5"] = ("->", node)
    elif word.startswith("/"):
        kind, _, text = rest.partition(" ")
        rows[word] = (kind, text)
    else:
        raise ValueError(f"no such line in a board table: {line!r}")


def _take_call(word: str, rest: str, live: dict[str, Any]) -> None:
    if word == "live":
        for pair in rest.split():
            key, _, value = pair.partition("=")
            live[key] = (
                value if key == "machine" else int(value) if key == "uid" else [int(n) for n in value.split(",")]
            )
    elif word == "env":
        key, _, value = rest.partition("=")
        live["environ"][key] = value
    else:
        path, name, version, *date = rest.split()
        live["drm"][path] = [name, [int(part) for part in version.split(".")], date[0] if date else ""]


def _write(root: Path, path: str, kind: str, text: str, manifest: dict[str, Any]) -> None:
    if kind == "char":
        numbers, mode, owner = text.split()
        major, minor = (int(part) for part in numbers.split(":"))
        uid, gid = (int(part) for part in owner.split(":"))
        manifest["nodes"][path] = ["char", int(mode, 8), uid, gid, major, minor]
        (root / path[1:]).parent.mkdir(parents=True, exist_ok=True)
        return
    file = root / path[1:]
    file.parent.mkdir(parents=True, exist_ok=True)
    if kind == "!":
        manifest["refused"][path] = [text, ""]
        file.write_text("", encoding="utf-8")
    elif kind == "->":
        file.symlink_to(text)
    elif kind == "dir":
        file.mkdir(exist_ok=True)
    elif kind == "fifo":
        os.mkfifo(file)
    elif kind == "hex":
        file.write_bytes(bytes.fromhex(text))
    elif kind == "gz":
        file.write_bytes(gzip.compress(("\n".join(text.split()) + "\n").encode(), mtime=0))
    elif kind == "lib":
        file.write_bytes(_elf(text))
    elif kind == "=":
        content = text.replace("\\0", "\0").replace("\\n", "\n").replace("\\t", "\t")
        file.write_text(content if content.endswith("\0") else content + "\n", encoding="utf-8")
    else:
        raise ValueError(f"{path}: no such kind of file: {kind!r}")


def _elf(text: str, machine: int = 183) -> bytes:
    """An ELF64 header for aarch64 (machine 183), no sections, and the text behind it."""
    ident = b"\x7fELF" + bytes((2, 1, 1)) + bytes(9)
    header = ident + struct.pack("<HHIQQQIHHHHHH", 3, machine, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)
    return header + b"\0" * 64 + text.encode() + b"\0" * 64


# ---- groups of lines that many boards share ---------------------------------------------------------------------------


def cpus(policies: dict[int, tuple[list[int], str, str, list[int], str]]) -> str:
    """Policy -> (cpus, MIDR, governor, clocks in kHz, capacity or empty)."""
    every = [cpu for row in policies.values() for cpu in row[0]]
    lines = [f"/sys/devices/system/cpu/{name} = 0-{len(every) - 1}" for name in ("online", "present", "possible")]
    for policy, (members, midr, governor, clocks, capacity) in policies.items():
        base = f"/sys/devices/system/cpu/cpufreq/policy{policy}"
        lines += [
            f"{base}/related_cpus = {' '.join(str(cpu) for cpu in members)}",
            f"{base}/scaling_governor = {governor}",
            f"{base}/scaling_available_frequencies = {' '.join(str(khz) for khz in clocks)}",
            f"{base}/scaling_available_governors = ondemand userspace powersave performance schedutil",
            f"{base}/scaling_cur_freq = {clocks[-1]}",
            f"{base}/scaling_min_freq = {clocks[0]}",
            f"{base}/scaling_max_freq = {clocks[-1]}",
            f"{base}/cpuinfo_max_freq = {clocks[-1]}",
        ]
        for cpu in members:
            lines.append(f"/sys/devices/system/cpu/cpu{cpu}/regs/identification/midr_el1 = {midr}")
            if capacity:
                lines.append(f"/sys/devices/system/cpu/cpu{cpu}/cpu_capacity = {capacity}")
    return "\n".join(lines)


def devfreq(name: str, governor: str, now: int, clocks: str, governors: str = "") -> str:
    """An entry of /sys/class/devfreq; clocks in Hz."""
    listed = [int(word) for word in clocks.split()]
    base = f"/sys/class/devfreq/{name}"
    lines = [
        f"{base}/governor = {governor}",
        f"{base}/cur_freq = {now}",
        f"{base}/min_freq = {listed[0]}",
        f"{base}/max_freq = {listed[-1]}",
        f"{base}/available_frequencies = {clocks}",
    ]
    if governors:
        lines.append(f"{base}/available_governors = {governors}")
    return "\n".join(lines)


def npu_device(name: str, driver: str | None, compatible: str, group: int | None, **extra: str) -> str:
    """The platform device of an NPU (core), with its links."""
    base = f"/sys/devices/platform/{name}"
    address = name.partition(".")[0]
    lines = [f"/sys/bus/platform/devices/{name} -> ../../../devices/platform/{name}"]
    uevent = [f"DRIVER={driver}"] if driver else []
    uevent += ["OF_NAME=npu", f"OF_FULLNAME=/npu@{address}", f"OF_COMPATIBLE_0={compatible}", "OF_COMPATIBLE_N=1"]
    lines.append(f"{base}/uevent = " + "\\n".join(uevent))
    if driver:
        lines.append(f"{base}/driver -> ../../../bus/platform/drivers/{driver}")
        lines.append(f"/sys/bus/platform/drivers/{driver}/bind = ")
    if group is not None:
        lines.append(f"{base}/iommu_group -> ../../../kernel/iommu_groups/{group}")
        lines.append(f"/sys/kernel/iommu_groups/{group}/type = DMA")
    for leaf, text in extra.items():
        lines.append(f"{base}/{leaf.replace('__', '/')} = {text}")
    lines.append(f"/proc/device-tree/npu@{address}/compatible = {compatible}\\0")
    lines.append(f"/proc/device-tree/npu@{address}/status = okay\\0")
    return "\n".join(lines)


def drm(name: str, minor: int, device: str, uevent: str, *, gid: int = 109, mode: str = "0660") -> str:
    """A DRM class entry with its node. ``device`` is a path below /sys/devices."""
    parent = f"/sys/devices/{device}"
    return "\n".join(
        [
            f"/sys/class/drm/{name} -> ../../devices/{device}/drm/{name}",
            f"{parent}/drm/{name}/uevent = MAJOR=226\\nMINOR={minor}\\nDEVNAME=dri/{name}\\nDEVTYPE=drm_minor",
            f"{parent}/drm/{name}/device -> ../../../{device.rpartition('/')[2]}",
            f"{parent}/uevent = {uevent}",
            f"/dev/dri/{name} char 226:{minor} {mode} 0:{gid}",
        ]
    )


def zones(*rows: tuple[str, int]) -> str:
    """Thermal zones (type, milli-degrees)."""
    lines = []
    for number, (kind, temperature) in enumerate(rows):
        base = f"/sys/class/thermal/thermal_zone{number}"
        lines += [f"{base}/type = {kind}", f"{base}/temp = {temperature}"]
        lines += [f"{base}/trip_point_0_type = critical", f"{base}/trip_point_0_temp = 115000"]
    return "\n".join(lines)


def regulator(number: int, name: str, microvolts: int) -> str:
    base = f"/sys/class/regulator/regulator.{number}"
    return f"{base}/name = {name}\n{base}/microvolts = {microvolts}\n{base}/state = enabled"


def meminfo(total_kb: int, cma_total_kb: int | None = None, cma_free_kb: int | None = None) -> str:
    fields = [f"MemTotal:       {total_kb} kB", f"MemAvailable:   {total_kb // 2} kB"]
    if cma_total_kb is not None:
        fields += [f"CmaTotal:       {cma_total_kb} kB", f"CmaFree:        {cma_free_kb or 0} kB"]
    return "/proc/meminfo = " + "\\n".join(fields)


def interrupts(cpu_count: int, rows: list[tuple[int, list[int], str]]) -> str:
    """Rows of (number, counts per processor, devices)."""
    head = "           " + " ".join(f"CPU{cpu}" for cpu in range(cpu_count))
    lines = [head]
    lines += [
        f"{number:4d}: {' '.join(str(c) for c in counts)}  GICv3 142 Level  {label}" for number, counts, label in rows
    ]
    table = "/proc/interrupts = " + "\\n".join(lines)
    affinity = [f"/proc/irq/{number}/smp_affinity_list = 0-{cpu_count - 1}" for number, _, _ in rows]
    return "\n".join([table, *affinity])
