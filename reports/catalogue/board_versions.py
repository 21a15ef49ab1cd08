# SPDX-License-Identifier: Apache-2.0
"""Versions of driver, librknnrt and librkllmrt, and how they go together."""

from __future__ import annotations

from reports.catalogue.entry import Entry
from reports.contract import Severity

_GET = "wget https://github.com/airockchip/rknn-toolkit2/raw/v2.3.2/rknpu2/runtime/Linux/librknn_api/{abi}/librknnrt.so"
_UPGRADE = "sudo apt-get update && sudo apt-get dist-upgrade && sudo reboot    # the driver comes with the kernel"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        code="NPU-V001",
        severity=Severity.ERROR,
        what="Driver {driver} and {library} {version} do not go together.",
        why="{reason}",
        fix=("{command}",),
        rank=110,
    ),
    Entry(
        code="NPU-V002",
        severity=Severity.WARNING,
        what="Several copies of {library} lie on this system; programs get {version} from {path}.",
        why="The others are shadowed ({others}): an old copy that wins shows as a model version that is not "
        "supported, a "
        "missing symbol, or a failing init.",
        fix=(
            "{command}",
            "sudo ldconfig && ldconfig -p | grep {library}",
        ),
        rank=100,
    ),
    Entry(
        code="NPU-V003",
        severity=Severity.ERROR,
        what="Driver {driver} is known to be broken: {reason}.",
        why="Version {good} cures it; no library version does.",
        fix=("{command}",),
        rank=104,
    ),
    Entry(
        code="NPU-V004",
        severity=Severity.WARNING,
        what="Driver {driver} is too old for large models.",
        why="Before 0.9.6 the driver has one 4 GiB address window: weights, KV cache and activations must fit into it.",
        fix=(_UPGRADE, "On {os} the kernel decides; choose an image with driver 0.9.8."),
        rank=125,
    ),
    Entry(
        code="NPU-V005",
        severity=Severity.WARNING,
        what="Untested pair: driver {driver} with {library} {version}.",
        why="No report of this pair is known to the kit; it may work.",
        fix=("Measure and compare with exact results, and send the report: python -m probes --level medium",),
        rank=150,
    ),
    Entry(
        code="NPU-V006",
        severity=Severity.WARNING,
        what="librknnrt {version} is old.",
        why="Models converted by a newer toolkit are refused ('version 6' and the like), and the matmul API "
        "came with 1.5.",
        fix=(_GET, "sudo install -m 644 librknnrt.so {path} && sudo ldconfig"),
        rank=112,
    ),
    Entry(
        code="NPU-V007",
        severity=Severity.ERROR,
        what="No copy of librknnrt (there are {count}) can be loaded: {problem}.",
        why="dlopen by name looks in the loader's directories, and passes over a library for another machine.",
        fix=(_GET, "sudo install -m 644 librknnrt.so /usr/lib/ && sudo ldconfig"),
        rank=106,
    ),
    Entry(
        code="NPU-V008",
        severity=Severity.INFO,
        what="Driver {driver} shows no load.",
        why="The load file came with driver 0.7.2.",
        fix=(_UPGRADE,),
        rank=930,
    ),
    Entry(
        code="NPU-V009",
        severity=Severity.INFO,
        what="Driver {driver}: run one NPU program at a time.",
        why="Several processes at once, and switching IOMMU domains between them, were fixed in 0.9.8.",
        fix=(_UPGRADE,),
        rank=931,
    ),
    Entry(
        code="NPU-V010",
        severity=Severity.WARNING,
        what="librkllmrt {version} asks for driver 0.9.8; this is {driver}.",
        why="It warns or refuses on older drivers. {os} ships this driver with its kernel.",
        fix=(
            _UPGRADE,
            "If that brings no newer driver: use an image with driver 0.9.8 (such as Armbian's vendor kernel).",
        ),
        rank=118,
    ),
    Entry(
        code="NPU-V011",
        severity=Severity.WARNING,
        what="The routes to the driver version disagree.",
        why="Most likely a module was replaced after boot, or the log is of another driver.",
        fix=("sudo reboot", "cat /sys/module/rknpu/version; sudo cat /sys/kernel/debug/rknpu/version"),
        rank=128,
    ),
    Entry(
        code="NPU-V012",
        severity=Severity.INFO,
        what="No librknnrt is installed.",
        why="The driver is ready; programs that use the NPU through the vendor runtime need the library.",
        fix=(_GET, "sudo install -m 644 librknnrt.so /usr/lib/ && sudo ldconfig"),
        rank=905,
    ),
)
