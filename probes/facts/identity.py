# SPDX-License-Identifier: Apache-2.0
"""Which board and which SoC. The device tree may overstate the silicon, so three witnesses are heard.

An RK3582 board may carry the device tree of an RK3588 (seen on Rock 5C): the OTP bytes, the boot line of the kernel,
and the number of processors and NPU cores are compared with what the device tree says. What none of them tells stays
unknown; nothing is ever taken for an RK3588.
"""

from __future__ import annotations

from probes.facts.parse import cpu_list, pairs
from probes.facts.sheet import Pen
from probes.facts.soc_table import SOCS, soc_of_compatible, soc_of_otp
from reports.contract import Provenance

_TREES = ("/proc/device-tree", "/sys/firmware/devicetree/base")
_IMAGES = (
    ("/etc/armbian-release", ("VENDOR", "BOARD", "VERSION", "BRANCH")),
    ("/etc/orangepi-release", ("BOARD", "VERSION", "BRANCH")),
    ("/etc/rsdk-release", ("BUILD_ID", "VERSION")),
)


def board(pen: Pen) -> None:
    """``board.*`` and ``os.*``: the strings of the device tree and of the distribution."""
    system = pen.system
    for key, name in (("board.model", "model"), ("board.compatible", "compatible")):
        answers = [system.strings(f"{tree}/{name}") for tree in _TREES]
        best = next((answer for answer in answers if answer.value is not None), answers[0])
        entries = best.value
        pen.take(key, best, entries if name == "compatible" else (entries[0] if entries else None))
    release = system.text("/etc/os-release")
    if release.value is None:
        release = system.text("/usr/lib/os-release")
    table = pairs(release.value)
    for key, name in (("os.name", "PRETTY_NAME"), ("os.id", "ID"), ("os.version", "VERSION_ID")):
        pen.put(key, table.get(name), release.path, reason=release.reason)
    image = []
    for path, names in _IMAGES:
        table = pairs(system.text(path).value)
        image += [f"{path.rpartition('/')[2]}: {name}={table[name]}" for name in names if name in table]
    radxa = system.text("/etc/radxa_image_fingerprint").value
    if radxa:
        image += [f"radxa: {line}" for line in radxa.splitlines()[:2]]
    pen.put("os.image", image[:8] or None, "/etc/*-release", reason="no image release file of a board vendor")


def soc(pen: Pen) -> None:
    """``soc.*``: name, family, the witnesses, and whether they agree."""
    system, sheet = pen.system, pen.sheet
    entries = [str(entry) for entry in sheet.items_of("board.compatible")]
    named = soc_of_compatible(entries)
    pen.put("soc.device_tree", named, sheet.source("board.compatible"), reason=_no_name(pen, entries))
    otp_code, otp_name = _otp(pen)
    boot_id = sheet.table("klog.numbers").get("soc_id")
    pen.put("soc.boot_id", boot_id, "kernel log", reason="no SoC line in the kernel log")
    present = cpu_list(system.text("/sys/devices/system/cpu/present").value)
    driver_cores = len(sheet.items_of("npu.load_percent")) or None
    silicon, basis = otp_name, "OTP bytes"
    if silicon is None and otp_code is not None:
        silicon = _named_or(named, otp_code)
    if silicon is None and isinstance(boot_id, str) and boot_id[:4].isdigit():
        silicon, basis = _named_or(named, boot_id[:4]), "kernel boot line"
    name, sure = silicon, Provenance.READ
    if name is None and named in SOCS and SOCS[named].family == "rk3588":
        fewer_cpus = present and len(present) < 8
        if driver_cores == 2 or (fewer_cpus and driver_cores is None and len(present) == 6):
            name = "RK3582 or RK3583"
            basis = f"{named} in the device tree; {len(present) or '?'} processors, {driver_cores or '?'} NPU cores"
            sure = Provenance.ASSUMED
    if name is None:
        name, basis = named, "device tree"
    pen.put("soc.name", name, basis, provenance=sure, reason=_no_name(pen, entries))
    pen.put(
        "soc.is_rockchip",
        _is_rockchip(pen, entries, otp_code),
        "device tree, OTP, NPU devices",
        reason=_no_name(pen, entries),
    )
    row = SOCS.get((name or "").split(" or ")[0])
    pen.assume("soc.family", row.family if row else None, "SoC table", "the SoC is unknown, or not in the table")
    claimed = SOCS.get(named or "")
    counted = claimed is not None and (driver_cores == claimed.cores or len(present) == claimed.cpus)
    fewer = None
    if row is not None and claimed is not None and (basis != "device tree" or counted):
        fewer = (row.cores or 0) < (claimed.cores or 0)
    pen.put("soc.overstated", fewer, f"device tree against {basis}", reason="fewer than two witnesses")


def _named_or(named: str | None, code: str) -> str:
    """The device tree's name where it is a variant of the chip with this code; else the chip's plain name."""
    return named if named is not None and named.startswith(f"RK{code}") else f"RK{code}"


def _otp(pen: Pen) -> tuple[str | None, str | None]:
    base = "/sys/bus/nvmem/devices"
    names = pen.system.names(base)
    cells = [name for name in names.value or [] if name.startswith("rockchip-otp")]
    if not cells:
        pen.put("soc.otp_code", None, base, reason=f"{base}: no Rockchip OTP")
        return None, None
    answer = pen.system.read(f"{base}/{cells[0]}/nvmem", limit=65536)
    found = soc_of_otp(answer.value) if answer.value is not None else None
    pen.take("soc.otp_code", answer, found[0] if found else None)
    return found or (None, None)


def _no_name(pen: Pen, entries: list[str]) -> str:
    if entries:
        return f"no entry of the compatible list names a Rockchip SoC: {', '.join(entries)[:200]}"
    return pen.sheet.reason("board.compatible") or "no device tree"


def _is_rockchip(pen: Pen, entries: list[str], otp_code: str | None) -> bool | None:
    if any(entry.startswith("rockchip,") for entry in entries) or otp_code:
        return True
    devices = pen.sheet.rows("npu.platform_devices")
    if any("rockchip" in str(row.get("compatible")) or row.get("driver") in ("RKNPU", "rocket") for row in devices):
        return True
    if pen.sheet.text("npu.stack") not in (None, "none"):
        return True
    if entries:
        return False
    machine = pen.system.live.machine or ""
    return False if machine.startswith(("x86", "i386", "i686", "riscv", "ppc", "s390")) else None
