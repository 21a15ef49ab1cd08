# SPDX-License-Identifier: Apache-2.0
"""Memory and IOMMU (M), and the conditions of speed (P)."""

from __future__ import annotations

from reports.catalogue.entry import Entry
from reports.contract import Severity

ENTRIES: tuple[Entry, ...] = (
    Entry(
        code="NPU-M010",
        severity=Severity.ERROR,
        what="The NPU runs without IOMMU and has {cma_mib} MiB of contiguous memory (CMA).",
        why="Every buffer of a model must then come from CMA: allocation fails for all but the smallest.",
        fix=(
            "Best: use a device tree with the NPU's iommus property (vendor kernels have it).",
            "Else add cma=512M to the kernel command line and reboot; check: grep Cma /proc/meminfo",
        ),
        rank=200,
    ),
    Entry(
        code="NPU-M011",
        severity=Severity.WARNING,
        what="The NPU runs without IOMMU.",
        why="Buffers come from contiguous memory alone (CMA: {cma}); that is the ceiling for models.",
        fix=(
            "Use a device tree with the NPU's iommus property, or reserve more with cma= on the kernel command line.",
        ),
        rank=202,
    ),
    Entry(
        code="NPU-M012",
        severity=Severity.WARNING,
        what="{soc} with {memory_gib:.1f} GiB and IOMMU on a mainline kernel: page tables above 4 GiB may be "
        "unreadable.",
        why="The version-2 IOMMU of RK356x cannot read page tables above 4 GiB physical on kernels without the "
        "fix: jobs "
        "then time out with raw status 0x10000.",
        fix=("If jobs time out: add mem=3840M to the kernel command line, or use a kernel with the fix.",),
        rank=204,
    ),
    Entry(
        code="NPU-M013",
        severity=Severity.ERROR,
        what="NPU jobs time out on {soc} with {memory_gib:.1f} GiB: its IOMMU cannot read page tables above 4 GiB.",
        why="Known on mainline kernels for RK356x; the driver and the library are not at fault.",
        fix=("Add mem=3840M to the kernel command line and reboot, or use a kernel with the rockchip-iommu fix.",),
        rank=29,
    ),
    Entry(
        code="NPU-M014",
        severity=Severity.WARNING,
        what="Untested combination: {soc} without IOMMU and {memory_gib:.1f} GiB of memory.",
        why="The NPU of RK356x reaches 32-bit addresses; a board of this kind is known on which every job times out.",
        fix=("Add mem=3840M to the kernel command line to test, or use a vendor kernel with IOMMU.",),
        rank=203,
    ),
    Entry(
        code="NPU-M015",
        severity=Severity.ERROR,
        what="The bounce buffer (swiotlb) of the NPU ran full.",
        why="Without IOMMU, memory above 4 GiB is copied through it, and it is small.",
        fix=("Use IOMMU mode, or add swiotlb=65536 to the kernel command line and reboot.",),
        rank=32,
    ),
    Entry(
        code="NPU-M016",
        severity=Severity.ERROR,
        what="The NPU ran out of address space (windows of 4 GiB: {windows}).",
        why="Weights, KV cache and activations of one domain share 4 GiB.",
        fix=("Use a smaller model or context, or driver 0.9.8 with a runtime that spreads over domains.",),
        rank=55,
    ),
    Entry(
        code="NPU-P010",
        severity=Severity.WARNING,
        what="Memory clock scaling is absent: the boot firmware is too old (ATF version {atf}).",
        why="Memory stays at the clock the loader left; published decode speeds need the highest one.",
        fix=(
            (
                "Update the boot loader of the board (SPI flash or SD card), then check: cat "
                "/sys/class/devfreq/dmc/available_frequencies"
            ),
        ),
        rank=300,
    ),
    Entry(
        code="NPU-P011",
        severity=Severity.WARNING,
        what="The NPU is stuck at a low clock: {now_mhz} MHz{of}.",
        why="Everything works and is several times slower. {reason}",
        fix=("{command}",),
        rank=302,
    ),
    Entry(
        code="NPU-P012",
        severity=Severity.WARNING,
        what="Governors that hold the clock down: {governors}.",
        why="Processor and memory clocks bound token rate as much as the NPU does.",
        fix=("{command}",),
        rank=310,
    ),
    Entry(
        code="NPU-P013",
        severity=Severity.INFO,
        what="The memory clock cannot be read or scaled on this kernel.",
        why="The loader set it; that is often the highest clock, but only a measurement can tell.",
        fix=("python -m probes --level medium    # measures GB/s",),
        rank=940,
    ),
    Entry(
        code="NPU-P014",
        severity=Severity.INFO,
        what="Governors are the defaults: {governors}.",
        why="Published figures are taken with fixed clocks; default governors cost time at the start of each job.",
        fix=("{command}",),
        rank=941,
    ),
    Entry(
        code="NPU-P015",
        severity=Severity.WARNING,
        what="The NPU or a processor is held back by heat: {sign}.",
        why="The vendor driver caps the NPU at 800 MHz above 85 C; numbers from a hot board are not comparable.",
        fix=("Cool the board and run again; check: grep . /sys/class/thermal/thermal_zone*/temp",),
        rank=305,
    ),
    Entry(
        code="NPU-P016",
        severity=Severity.INFO,
        what="All NPU interrupts are served by processor {cpu}, a little core.",
        why="Completion is then noticed late; a big core serves them faster.",
        fix=("{command}",),
        rank=942,
    ),
    Entry(
        code="NPU-P017",
        severity=Severity.WARNING,
        what="Memory never ran at its highest clock since boot ({top_mhz} MHz).",
        why="Decoding is bound by memory: at {now_mhz} MHz the ceiling is {share:.0f} % of it.",
        fix=("echo performance | sudo tee /sys/class/devfreq/dmc/governor",),
        rank=303,
    ),
    Entry(
        code="NPU-P018",
        severity=Severity.WARNING,
        what="The NPU's highest clock is limited to {max_mhz} of {top_mhz} MHz.",
        why="A script, a thermal policy or a service lowered max_freq.",
        fix=("echo {top_hz} | sudo tee {path}",),
        rank=304,
    ),
)
