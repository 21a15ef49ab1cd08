# SPDX-License-Identifier: Apache-2.0
"""Driver, librknnrt and librkllmrt: known-bad versions and pairs, shadowed copies, untested pairs.

Sources: the version notes of the vendor driver, rknn-llm issues 97, 290, 413, 449 (0.8.2 breaks w8a8), rknn-toolkit2
issues 138 (core masks need 0.9.6), 294 and radxa kernel issue 312 (0.9.2 and 0.9.3 fail to submit),
linux-rockchip pull 290.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from probes.facts.parse import Version, dotted, version
from probes.facts.sheet import FactSheet
from probes.findings.common import RKNPU_STACKS, driver, evidence, has_rknpu, os_name
from reports.catalogue import make_finding
from reports.contract import Finding

KNOWN_BAD_DRIVERS = {
    (0, 9, 2): "the first submit fails, or only core 0 works",
    (0, 9, 3): "the first submit fails, or only core 0 works",
}
KNOWN_DRIVERS = (
    *((0, 4, 2), (0, 6, 4), (0, 7, 2), (0, 8, 0), (0, 8, 2), (0, 8, 5), (0, 8, 8)),
    *((0, 9, 2), (0, 9, 3), (0, 9, 5), (0, 9, 6), (0, 9, 7), (0, 9, 8)),
)
KNOWN_RUNTIMES = (
    *((1, 3, 0), (1, 4, 0), (1, 5, 0), (1, 5, 2), (1, 6, 0)),
    *((2, 0, 0), (2, 1, 0), (2, 2, 0), (2, 3, 0), (2, 3, 2)),
)


class BadPair(NamedTuple):
    """Drivers below ``driver_below`` with versions of ``library`` from ``since`` on."""

    driver_below: Version
    library: str
    since: Version
    reason: str


BAD_PAIRS = (
    BadPair(
        (0, 8, 5), "librknnrt", (2, 0, 0), "Drivers up to 0.8.2 give wrong or failing w8a8 matmul with this runtime."
    ),
    BadPair((0, 9, 6), "librkllmrt", (1, 0, 0), "librkllmrt needs the address windows that came with driver 0.9.6."),
)
_UPGRADE = "sudo apt-get update && sudo apt-get dist-upgrade && sudo reboot    # the driver comes with the kernel"
_BUILTIN = "Boot a kernel with driver 0.9.8: this one has its driver built in, a newer module cannot replace it."


def shadowed(sheet: FactSheet) -> Iterator[Finding]:
    for key, library in (("runtime", "librknnrt"), ("rkllm", "librkllmrt")):
        path, taken = sheet.text(f"{key}.path"), sheet.text(f"{key}.version")
        others = [row for row in sheet.rows(f"{key}.shadowed") if row.get("version") != taken]
        if path and others:
            shown = ", ".join(f"{row['path']} {row.get('version') or 'of unknown version'}" for row in others[:4])
            yield make_finding(
                "NPU-V002",
                evidence(sheet, f"{key}.path", f"{key}.version", f"{key}.shadowed"),
                library=library,
                version=taken or "an unknown version",
                path=path,
                others=shown,
                command=_keep_one(sheet, path, taken, others),
            )


def _keep_one(sheet: FactSheet, path: str, taken: str | None, others: list[dict[str, Any]]) -> str:
    """The newest copy stays: in the place where programs look, if it is not there already."""
    rows = {row.get("path"): row for row in sheet.rows("libraries")}
    machine = rows.get(path, {}).get("elf_machine")
    fitting = [row for row in others if rows.get(row["path"], {}).get("elf_machine") == machine]
    newest = max(fitting, key=lambda row: version(row.get("version")) or (), default=None)
    if newest is not None and (version(newest.get("version")) or ()) > (version(taken) or ()):
        return f"sudo install -m 644 {newest['path']} {path}    # the newer copy, where programs look"
    searched = [str(row["path"]) for row in others if rows.get(row["path"], {}).get("on_loader_path")]
    if searched:
        return f"sudo rm {' '.join(searched[:4])}    # not newer, and never loaded by name"
    return f"Have programs that load {others[0]['path']} by its path load {path}"


def bad_driver(sheet: FactSheet) -> Iterator[Finding]:
    number = driver(sheet)
    if number in KNOWN_BAD_DRIVERS:
        builtin = sheet.text("npu.driver_linkage") == "builtin"
        yield make_finding(
            "NPU-V003",
            evidence(sheet, "npu.driver_version", "npu.driver_linkage"),
            driver=dotted(number),
            reason=KNOWN_BAD_DRIVERS[number or ()],
            good="0.9.6",
            command=_BUILTIN if builtin else _UPGRADE,
        )


def bad_pair(sheet: FactSheet) -> Iterator[Finding]:
    number = driver(sheet)
    if number is None:
        return
    for pair in BAD_PAIRS:
        key = "runtime" if pair.library == "librknnrt" else "rkllm"
        found = version(sheet.text(f"{key}.version"))
        if found is not None and found >= pair.since and number < pair.driver_below:
            yield make_finding(
                "NPU-V001",
                evidence(sheet, "npu.driver_version", f"{key}.version"),
                driver=dotted(number),
                library=pair.library,
                version=dotted(found),
                reason=pair.reason,
                command=_BUILTIN if sheet.text("npu.driver_linkage") == "builtin" else _UPGRADE,
            )


def old_driver(sheet: FactSheet) -> Iterator[Finding]:
    number = driver(sheet)
    if number is None:
        return
    shown = evidence(sheet, "npu.driver_version")
    small = sheet.text("soc.family") == "rv1106"  # models for it are a few MiB, its runtime is another one
    if number < (0, 9, 6) and not small:
        yield make_finding("NPU-V004", shown, driver=dotted(number), os=os_name(sheet))
    elif number < (0, 9, 8) and not small:
        yield make_finding("NPU-V009", shown, driver=dotted(number))
    if number < (0, 7, 2) and sheet.value("npu.load_percent") is None:
        yield make_finding("NPU-V008", shown, driver=dotted(number))
    llm = version(sheet.text("rkllm.version"))
    if llm is not None and llm >= (1, 1, 0) and (0, 9, 6) <= number < (0, 9, 8):
        shown = evidence(sheet, "npu.driver_version", "rkllm.version")
        yield make_finding("NPU-V010", shown, driver=dotted(number), version=dotted(llm), os=os_name(sheet))


def routes(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.flag("npu.driver_routes_agree") is False and has_rknpu(sheet):
        yield make_finding("NPU-V011", evidence(sheet, "npu.driver_version_routes"))


def runtime(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.text("npu.stack") not in RKNPU_STACKS or sheet.text("soc.family") == "rv1106":
        return
    path, found = sheet.text("runtime.path"), version(sheet.text("runtime.version"))
    copies = [row for row in sheet.rows("libraries") if "librknnrt" in str(row.get("path"))]
    if path is None and any(row.get("taken") for row in copies):
        return
    if path is None and copies and not any(row.get("on_loader_path") for row in copies):
        return  # a private copy, as Python wheels carry it, is found by its own program
    if path is None and copies:
        first = copies[0]
        problem = first.get("problem") or f"{first['path']} is for {first.get('elf_machine') or 'an unknown machine'}"
        yield make_finding(
            "NPU-V007", evidence(sheet, "runtime.path"), count=len(copies), problem=problem, abi=_abi(sheet)
        )
    elif path is None and sheet.value("libraries") is not None:
        yield make_finding("NPU-V012", evidence(sheet, "runtime.path"), abi=_abi(sheet))
    elif path is not None and found is not None and found < (1, 6, 0):
        yield make_finding(
            "NPU-V006",
            evidence(sheet, "runtime.path", "runtime.version"),
            version=dotted(found),
            path=path,
            abi=_abi(sheet),
        )


def _abi(sheet: FactSheet) -> str:
    """Folder of the vendor's published library for this machine."""
    return "armhf" if (sheet.text("kernel.machine") or "").startswith("armv") else "aarch64"


def untested(sheet: FactSheet) -> Iterator[Finding]:
    number, found = driver(sheet), version(sheet.text("runtime.version"))
    if number is None or found is None:
        return
    if number not in KNOWN_DRIVERS or found[:3] not in KNOWN_RUNTIMES:
        yield make_finding(
            "NPU-V005",
            evidence(sheet, "npu.driver_version", "runtime.version"),
            driver=dotted(number),
            library="librknnrt",
            version=dotted(found),
        )


RULES = (shadowed, bad_driver, bad_pair, old_driver, routes, runtime, untested)
