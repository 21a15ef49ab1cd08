# SPDX-License-Identifier: Apache-2.0
"""Kernel: release, flavour, its options about the NPU, boot loader versions.

Flavours: ``vendor`` has the ROCKCHIP_RKNPU option in its tree; ``mainline`` has not. Where the options cannot be read
the release decides: Rockchip's own trees are 4.4, 4.19, 5.10 and 6.1.
"""

from __future__ import annotations

import re
import zlib

from probes.answers import Answer
from probes.facts.parse import kernel_options, version
from probes.facts.sheet import Pen

MAX_CONFIG = 2 * 1024 * 1024
VENDOR_SERIES = ((4, 4), (4, 19), (5, 10), (6, 1))
OPTIONS = (
    "CONFIG_ROCKCHIP_RKNPU",
    "CONFIG_ROCKCHIP_RKNPU_DEBUG_FS",
    "CONFIG_ROCKCHIP_RKNPU_PROC_FS",
    "CONFIG_ROCKCHIP_RKNPU_DRM_GEM",
    "CONFIG_ROCKCHIP_RKNPU_DMA_HEAP",
    "CONFIG_ROCKCHIP_RKNPU_FENCE",
    "CONFIG_ROCKCHIP_RKNPU_SRAM",
    "CONFIG_DRM_ACCEL_ROCKET",
    "CONFIG_ROCKCHIP_IOMMU",
    "CONFIG_NO_GKI",
    "CONFIG_IOMMU_API",
    "CONFIG_CMA_SIZE_MBYTES",
    "CONFIG_DRM_ACCEL",
)


def collect(pen: Pen) -> None:
    """``kernel.*`` and ``boot.*``."""
    system = pen.system
    release = system.text("/proc/sys/kernel/osrelease")
    pen.take("kernel.release", release, release.value)
    pen.put("kernel.machine", system.live.machine, "uname", reason="not recorded in the picture")
    answer, options = _options(pen, release.value)
    known = {name: options.get(name, "absent") for name in OPTIONS} if options else None
    pen.put("kernel.npu_options", known, answer.path, reason=answer.reason, needs_root=answer.needs_root)
    pen.put("kernel.flavour", flavour(release.value, options), f"{answer.path}, release", reason=release.reason)
    cmdline = system.text("/proc/cmdline")
    line = cmdline.value or ""
    loader = re.search(r"\bandroidboot\.fwver=([\w.,/+-]{1,200})", line)
    pen.put(
        "boot.loader",
        loader.group(1) if loader else None,
        cmdline.path,
        reason=cmdline.reason if cmdline.value is None else "no androidboot.fwver on the kernel command line",
    )
    arguments = re.findall(r"(?:^|\s)((?:cma|mem|maxcpus|swiotlb|iommu\.\w+|coherent_pool)=[\w@,.]{1,40})", line)
    pen.put("kernel.arguments", None if cmdline.value is None else arguments, cmdline.path, reason=cmdline.reason)
    modules = system.text("/proc/modules", limit=1024 * 1024)
    pen.put("kernel.npu_modules", npu_modules(modules.value), modules.path, reason=modules.reason)
    pen.put("kernel.module_files", _module_files(pen, release.value), "/lib/modules", reason="no module list readable")


def npu_modules(text: str | None) -> list[str] | None:
    """``rknpu`` and ``rocket`` lines of ``/proc/modules``, with the taint letters: ``rknpu (OE)``."""
    if text is None:
        return None
    found = []
    for line in text.splitlines()[:4096]:
        parts = line.split()
        if parts and parts[0] in ("rknpu", "rocket"):
            taint = parts[-1] if parts[-1].startswith("(") else ""
            found.append(f"{parts[0]} {taint}".strip())
    return found


def flavour(release: str | None, options: dict[str, str]) -> str | None:
    """``vendor`` or ``mainline``; None without a release."""
    if "CONFIG_ROCKCHIP_RKNPU" in options:
        return "vendor"
    numbers = version(release)
    if numbers is None:
        return None
    if options and "CONFIG_ROCKCHIP_MPP_SERVICE" not in options:
        return "mainline"
    return "vendor" if numbers[:2] in VENDOR_SERIES else "mainline"


def _options(pen: Pen, release: str | None) -> tuple[Answer[bytes], dict[str, str]]:
    packed = pen.system.read("/proc/config.gz", limit=1024 * 1024)
    if packed.value is not None:
        options = kernel_options(unpack(packed.value))
        if options:
            return packed, options
    if release and re.fullmatch(r"[\w.+~-]{1,100}", release):
        plain = pen.system.read(f"/boot/config-{release}", limit=MAX_CONFIG)
        if plain.value is not None:
            return plain, kernel_options(plain.value.decode("utf-8", "replace"))
    return packed, {}


def unpack(data: bytes) -> str | None:
    """The text of a gzip file, at most ``MAX_CONFIG`` bytes of it; None for what is no gzip."""
    try:
        return zlib.decompressobj(wbits=31).decompress(data, MAX_CONFIG).decode("utf-8", "replace")
    except zlib.error:
        return None


def _module_files(pen: Pen, release: str | None) -> list[str] | None:
    """Drivers of this kernel that lie ready as modules or are built in: ``rknpu (module)``, ``rocket (builtin)``."""
    if not release or not re.fullmatch(r"[\w.+~-]{1,100}", release):
        return None
    found: list[str] = []
    readable = False
    for name, kind in (("modules.dep", "module"), ("modules.builtin", "builtin")):
        answer = pen.system.read(f"/lib/modules/{release}/{name}", limit=4 * 1024 * 1024)
        readable = readable or answer.value is not None
        for driver in ("rknpu", "rocket"):
            if re.search(
                rb"(?:^|/)" + driver.encode() + rb"\.ko(?:\.\w+)?(?::|\s|$)", answer.value or b"", re.MULTILINE
            ):
                found.append(f"{driver} ({kind})")
    return found if readable else None
