# SPDX-License-Identifier: Apache-2.0
"""What is known of each SoC without reading the board: a table, so every value taken from it is marked ``assumed``.

Sources: NPU cores, DMA mask, task limits and on-chip buffers from the configuration tables of the vendor kernel driver
0.9.8; DDR width from the kernel's DDR counters (RK3588: four 16-bit channels) and boards; rated INT8 TOPS from the
vendor's published figures, left out where only hearsay was found.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Soc:
    """One SoC. ``cores`` NPU cores, ``cpus`` processors when nothing is fused off, ``ddr_bits`` external width."""

    name: str
    family: str
    cores: int | None
    dma_mask_bits: int | None
    ddr_bits: int | None
    cpus: int | None
    rated_tops: float | None = None
    npu_devfreq: str = ""


_ROWS = (
    Soc("RK3588", "rk3588", 3, 40, 64, 8, 6.0, "fdab0000.npu"),
    Soc("RK3588S", "rk3588", 3, 40, 64, 8, 6.0, "fdab0000.npu"),
    Soc("RK3588S2", "rk3588", 3, 40, 64, 8, 6.0, "fdab0000.npu"),
    Soc("RK3583", "rk3588", 2, 40, 64, None, None, "fdab0000.npu"),
    Soc("RK3582", "rk3588", 2, 40, 64, 6, None, "fdab0000.npu"),
    Soc("RK3576", "rk3576", 2, 40, 32, 8, 6.0, "27700000.npu"),
    Soc("RK3576S", "rk3576", 2, 40, 32, 8, None, "27700000.npu"),
    Soc("RK3576J", "rk3576", 2, 40, 32, 8, None, "27700000.npu"),
    Soc("RK3576M", "rk3576", 2, 40, 32, 8, None, "27700000.npu"),
    Soc("RK3568", "rk356x", 1, 32, 32, 4, None, "fde40000.npu"),
    Soc("RK3566", "rk356x", 1, 32, 32, 4, 0.8, "fde40000.npu"),
    Soc("RK3562", "rk3562", 1, 40, 32, 4, None, "ff300000.npu"),
    Soc("RV1106", "rv1106", 1, 32, None, 1, None, ""),
    Soc("RV1103", "rv1106", 1, 32, None, 1, None, ""),
    Soc("RV1126B", "rv1126b", 1, 40, None, 4, None, "22000000.npu"),
)
SOCS = {row.name: row for row in _ROWS}

OTP_RK3588_VARIANT = {0x21: "RK3588", 0x33: "RK3588S", 0x53: "RK3588S2"}
"""Byte 6 counted from ``RK`` in the OTP (seen in public board logs)."""

OTP_RK3576_VARIANT = {0x01: "RK3576", 0x13: "RK3576S", 0x0A: "RK3576J", 0x0D: "RK3576M"}
"""Byte 8 counted from ``RK``."""


def soc_of_otp(data: bytes) -> tuple[str, str | None] | None:
    """(four-digit code, SoC name) from the OTP bytes; the name is None where the variant byte is not in the tables.

    The lot bytes behind them identify one chip: not looked at.
    """
    at = data.find(b"RK")
    if at < 0 or len(data) < at + 9:
        return None
    chip = data[at : at + 9]
    code = chip[2:4].hex()
    if not code.isdigit() or code[0] not in "13":
        return None
    if code == "3588":
        return code, OTP_RK3588_VARIANT.get(chip[6])
    if code == "3576":
        return code, OTP_RK3576_VARIANT.get(chip[8])
    return code, f"RK{code}"


def soc_of_compatible(entries: list[str]) -> str | None:
    """SoC name from the device tree's compatible list, most specific entry first; None where none names a SoC.

    ``rockchip,rk3588-orangepi-5-plus`` names a board, ``rockchip,rk3588s`` a SoC.
    """
    for entry in entries:
        vendor, _, part = entry.partition(",")
        if vendor != "rockchip" or "-" in part:
            continue
        name = part.upper()
        if name[:2] in ("RK", "RV", "PX") and name[2:6].rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ").isdigit():
            return name
    return None
