# SPDX-License-Identifier: Apache-2.0
"""Pure parsers of kernel text. Each takes text and gives values; what does not fit is left out, never an exception."""

from __future__ import annotations

import re
from typing import NamedTuple

MAX_HZ = 20_000_000_000
Version = tuple[int, ...]


def integer(text: str | None, low: int = 0, high: int = 2**63 - 1) -> int | None:
    """A decimal integer alone in the text, within [low, high]; None otherwise."""
    if text is None or not re.fullmatch(r"\s*[+-]?[0-9]{1,20}\s*", text):
        return None
    value = int(text)
    return value if low <= value <= high else None


def hertz(text: str | None) -> int | None:
    """A clock in Hz. Zero is no clock."""
    return integer(text, 1, MAX_HZ)


def integers(text: str | None, low: int = 0, high: int = 2**63 - 1) -> list[int]:
    """White-space separated integers; words that are none are left out."""
    found = (integer(word, low, high) for word in (text or "").split()[:4096])
    return [value for value in found if value is not None]


def words(text: str | None, limit: int = 64) -> list[str]:
    return (text or "").split()[:limit]


def version(text: str | None) -> Version | None:
    """``0.9.8`` (a leading v allowed) as integers; None where there is no dotted number."""
    match = re.search(r"(?<![0-9.])v?([0-9]{1,4}(?:\.[0-9]{1,4}){1,3})", text or "")
    return tuple(int(part) for part in match.group(1).split(".")) if match else None


def dotted(parts: Version | None) -> str | None:
    return None if parts is None else ".".join(str(part) for part in parts)


def pairs(text: str | None, separator: str = "=") -> dict[str, str]:
    """``KEY=value`` lines, quotes taken off; the first of a repeated key counts."""
    table: dict[str, str] = {}
    for line in (text or "").splitlines()[:2000]:
        key, found, value = line.partition(separator)
        if found and key.strip() and not key.lstrip().startswith("#"):
            table.setdefault(key.strip(), value.strip().strip("\"'"))
    return table


def cpu_list(text: str | None) -> list[int]:
    """``0-3,6`` or ``0 1 2 3`` as numbers, at most 1024 of them, below 4096."""
    cpus: set[int] = set()
    for part in re.split(r"[,\s]+", (text or "").strip())[:256]:
        match = re.fullmatch(r"([0-9]{1,4})(?:-([0-9]{1,4}))?", part)
        if match:
            first, last = int(match.group(1)), int(match.group(2) or match.group(1))
            if first <= last < 4096:
                cpus.update(range(first, last + 1))
    return sorted(cpus)[:1024]


def meminfo(text: str | None) -> dict[str, int]:
    """``/proc/meminfo`` in bytes by field name."""
    table: dict[str, int] = {}
    for name, value in re.findall(r"^([A-Za-z_()]+):\s+([0-9]{1,15}) kB", text or "", re.MULTILINE):
        table.setdefault(name, int(value) * 1024)
    return table


def driver_version(text: str | None) -> str | None:
    """``RKNPU driver: v0.9.8`` (debugfs) or a bare ``0.9.8`` (module version) as ``0.9.8``."""
    return dotted(version(text))


def npu_load(text: str | None) -> list[int] | None:
    """Percent per core. Multi-core ``Core0: 12%, Core1: ...`` or one-core ``NPU load:  12%``; None for neither.

    The index of ``Core0`` is no load. Values above 100 happen on old drivers and are kept.
    """
    cores = re.findall(r"Core([0-9]{1,2}):\s*([0-9]{1,4})\s*%", text or "")
    if cores:
        return [int(load) for _, load in cores]
    single = re.search(r"load:\s*([0-9]{1,4})\s*%", text or "")
    return [int(single.group(1))] if single else None


def sram_totals(text: str | None) -> tuple[int, int] | None:
    """(total, free) bytes from the last line of the ``mm`` file of a driver built with SRAM."""
    match = re.search(r"total size:\s*([0-9]{1,12}),\s*used:\s*[0-9]{1,12},\s*free:\s*([0-9]{1,12})", text or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


class Residency(NamedTuple):
    """One row of ``trans_stat``: the clock, the time spent there, whether it is the present one."""

    hz: int
    ms: int
    now: bool


def trans_stat(text: str | None) -> list[Residency]:
    """Time at each clock since boot. Row prefix and last column are used: the header runs together at ten digits."""
    rows = []
    for line in (text or "").splitlines()[:256]:
        match = re.fullmatch(r"\s*(\*?)\s*([0-9]{4,11}):\s+(?:[0-9]+\s+)*?([0-9]{1,18})\s*", line)
        if match:
            rows.append(Residency(int(match.group(2)), int(match.group(3)), bool(match.group(1))))
    return rows


class Interrupt(NamedTuple):
    number: int
    counts: tuple[int, ...]
    label: str


def interrupts(text: str | None, contains: str) -> list[Interrupt]:
    """Rows of ``/proc/interrupts`` whose device part holds ``contains``. The header tells how many CPUs there are."""
    lines = (text or "").splitlines()
    cpus = len(re.findall(r"\bCPU[0-9]+\b", lines[0])) if lines else 0
    rows = []
    for line in lines[1:4096] if cpus else lines[:4096]:
        match = re.match(r"\s*([0-9]{1,6}):\s*(.*)$", line)
        if not match or contains not in match.group(2):
            continue
        parts = match.group(2).split()
        counts = []
        for part in parts[: cpus or len(parts)]:
            if not re.fullmatch(r"[0-9]{1,20}", part):
                break
            counts.append(int(part))
        rows.append(Interrupt(int(match.group(1)), tuple(counts), " ".join(parts[len(counts) :])))
    return rows


def limits(text: str | None) -> dict[str, tuple[int | None, int | None]]:
    """``/proc/self/limits``: name -> (soft, hard); unlimited is None."""
    table = {}
    for name, soft, hard in re.findall(
        r"^(Max [A-Za-z ]*[A-Za-z])\s{2,}([0-9]{1,20}|unlimited)\s+([0-9]{1,20}|unlimited)", text or "", re.MULTILINE
    ):
        table[name] = (integer(soft), integer(hard))
    return table


def process_ids(text: str | None) -> tuple[int | None, list[int]]:
    """Effective uid and all gids from ``/proc/self/status``."""
    uid = re.search(r"^Uid:\s+[0-9]+\s+([0-9]+)", text or "", re.MULTILINE)
    gid = re.search(r"^Gid:\s+[0-9]+\s+([0-9]+)", text or "", re.MULTILINE)
    groups = re.search(r"^Groups:([ 0-9\t]*)$", text or "", re.MULTILINE)
    gids = set(integers(groups.group(1))) if groups else set()
    if gid:
        gids.add(int(gid.group(1)))
    return (int(uid.group(1)) if uid else None), sorted(gids)


def group_names(text: str | None) -> dict[int, str]:
    """``/etc/group``: gid -> name. Members are not looked at."""
    table: dict[int, str] = {}
    for line in (text or "").splitlines()[:4096]:
        parts = line.split(":")
        gid = integer(parts[2]) if len(parts) >= 3 else None
        if gid is not None and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}", parts[0]):
            table.setdefault(gid, parts[0])
    return table


class Midr(NamedTuple):
    implementer: int
    variant: int
    part: int
    revision: int


ARM_PARTS = {
    0xC07: "Cortex-A7",
    0xD03: "Cortex-A53",
    0xD05: "Cortex-A55",
    0xD08: "Cortex-A72",
    0xD0B: "Cortex-A76",
    0xD46: "Cortex-A510",
    0xD47: "Cortex-A710",
}
LITTLE_PARTS = frozenset({0xC07, 0xD03, 0xD05, 0xD46})


def midr(text: str | None) -> Midr | None:
    """MIDR_EL1 text: implementer bits 31-24, variant 23-20, part 15-4, revision 3-0."""
    match = re.fullmatch(r"0x([0-9a-fA-F]{1,16})", (text or "").strip())
    if not match:
        return None
    value = int(match.group(1), 16) & 0xFFFFFFFF
    return Midr(value >> 24, (value >> 20) & 0xF, (value >> 4) & 0xFFF, value & 0xF) if value else None


def cpuinfo(text: str | None) -> dict[int, Midr]:
    """CPU number -> MIDR fields from ``/proc/cpuinfo`` of an Arm kernel."""
    table: dict[int, Midr] = {}
    current: int | None = None
    fields: dict[str, int] = {}
    for line in [*(text or "").splitlines()[:20000], "processor : end"]:
        key, _, value = line.partition(":")
        key = key.strip().lower()
        if key == "processor":
            if current is not None and "cpu part" in fields:
                table[current] = Midr(
                    fields.get("cpu implementer", 0),
                    fields.get("cpu variant", 0),
                    fields["cpu part"],
                    fields.get("cpu revision", 0),
                )
            current, fields = integer(value, 0, 4095), {}
        elif key.startswith("cpu "):
            match = re.fullmatch(r"\s*(0x[0-9a-fA-F]{1,8}|[0-9]{1,8})\s*", value)
            if match:
                fields[key] = int(match.group(1), 0)
    return table


def core_name(fields: Midr | None) -> str | None:
    """``Cortex-A76 r4p0``; None where the part is not in the table."""
    if fields is None or fields.implementer != 0x41 or fields.part not in ARM_PARTS:
        return None
    return f"{ARM_PARTS[fields.part]} r{fields.variant}p{fields.revision}"


def percent_at(text: str | None) -> tuple[int, int] | None:
    """``11@528000000Hz`` of a devfreq ``load`` file: (percent, Hz)."""
    match = re.fullmatch(r"\s*([0-9]{1,3})@([0-9]{1,11})Hz\s*", text or "")
    return (int(match.group(1)), int(match.group(2))) if match else None


def dmcinfo(text: str | None) -> dict[str, str | int]:
    """``/proc/dmcdbg/dmcinfo``: type, width of the bus in bits, clock in Hz. Other keys are left out."""
    table = pairs(text, ":")
    found: dict[str, str | int] = {}
    if re.fullmatch(r"(?:LP)?DDR[0-9]X?", table.get("DramType", "")):
        found["type"] = table["DramType"]
    width = re.match(r"([0-9]{1,3}) bit", table.get("Bus Width", ""))
    if width:
        found["width_bits"] = int(width.group(1))
    clock = hertz(table.get("cur_freq"))
    if clock:
        found["clock_hz"] = clock
    return found


def clock_rate(clk_summary: str | None, names: tuple[str, ...]) -> int | None:
    """Rate of the first of ``names`` in ``clk_summary``: name, three counts, rate."""
    for name in names:
        match = re.search(
            rf"^\s*{re.escape(name)}\s+[0-9]+\s+[0-9]+\s+[0-9]+\s+([0-9]{{1,11}})\b", clk_summary or "", re.MULTILINE
        )
        if match:
            return hertz(match.group(1))
    return None


def kernel_options(text: str | None) -> dict[str, str]:
    """``CONFIG_X=y`` lines: name -> y, m or text; ``is not set`` becomes n."""
    table = dict(re.findall(r"^(CONFIG_[A-Z0-9_]+)=(\S{1,64})", text or "", re.MULTILINE))
    for name in re.findall(r"^# (CONFIG_[A-Z0-9_]+) is not set", text or "", re.MULTILINE):
        table.setdefault(name, "n")
    return table
