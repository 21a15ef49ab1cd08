# SPDX-License-Identifier: Apache-2.0
"""Driver flavour, and why no driver is running: one cause, not all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from probes.facts.parse import version
from probes.facts.sheet import FactSheet
from probes.findings.common import driver, evidence, fault, first_line, has_rknpu
from reports.catalogue import make_finding
from reports.contract import Finding

_OVERLAY = {
    "armbian": "sudo armbian-config    # System, Kernel, Device-tree overlays: enable the NPU",
    "orangepi": "sudo orangepi-config    # System, Hardware: enable the NPU",
    "radxa": "sudo rsetup    # Overlays, Manage overlays: enable the NPU",
}


def rocket(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.text("npu.stack") == "rocket":
        yield make_finding("NPU-K001", evidence(sheet, "npu.stack", "npu.stack_basis"))


def no_driver(sheet: FactSheet) -> Iterator[Finding]:
    """The first cause that fits, from the most specific to the least."""
    if sheet.text("npu.stack") != "none" or not _has_npu(sheet):
        return
    for cause in (_disabled, _regulator_cut, _supplier, _probe_failed, _blacklisted, _not_built, _no_node, _not_bound):
        found = cause(sheet)
        if found is not None:
            yield found
            return


def _has_npu(sheet: FactSheet) -> bool:
    """Whether the board has an NPU at all: Rockchip makes SoCs without one (RK3399, RK3328), and they lack nothing."""
    if sheet.flag("soc.is_rockchip") is not True:
        return False
    return bool(sheet.text("soc.family") or sheet.rows("npu.dt_nodes") or sheet.rows("npu.platform_devices"))


def _disabled(sheet: FactSheet) -> Finding | None:
    nodes = sheet.rows("npu.dt_nodes")
    off = [row for row in nodes if row["status"] not in ("okay", "ok")]
    if not off or len(off) < len(nodes):
        return None
    image = " ".join([sheet.text("os.id") or "", *(str(line) for line in sheet.items_of("os.image"))]).lower()
    command = next((text for word, text in _OVERLAY.items() if word in image), None)
    return make_finding(
        "NPU-K002",
        f"{off[0]['path']}/status = {off[0]['status']}",
        nodes=", ".join(str(row["path"]).rpartition("/")[2] for row in off),
        first=off[0]["path"],
        command=command
        or "Enable the overlay for the NPU that came with the kernel: ls /boot/dtb*/rockchip/overlay* | grep -i npu",
    )


def _regulator_cut(sheet: FactSheet) -> Finding | None:
    line = sheet.table("klog.numbers").get("regulator_cleanup")
    return make_finding("NPU-K015", f"kernel log: {line}") if line else None


def _supplier(sheet: FactSheet) -> Finding | None:
    waiting = [str(row["name"]) for row in sheet.rows("npu.platform_devices") if row.get("waiting_for_supplier")]
    deferred = [str(line) for line in sheet.items_of("npu.deferred")]
    row = fault(sheet, "supplier-missing")
    if not waiting and not deferred and row is None:
        return None
    text = " ".join([*deferred, *(row["lines"] if row else [])])
    match = re.search(r"wait for supplier (\S+)|supplier (\S+) not ready", text)
    supplier = next((part for part in match.groups() if part), None) if match else None
    if supplier is None:
        supplier = "vdd_npu, most likely" if sheet.text("npu.regulator") is None else "not named by this kernel"
    shown = deferred[0] if deferred else first_line(row) if row else f"{waiting[0]}/waiting_for_supplier = 1"
    return make_finding("NPU-K005", shown, supplier=supplier)


def _probe_failed(sheet: FactSheet) -> Finding | None:
    row = fault(sheet, "probe-failed")
    return make_finding("NPU-K012", first_line(row)) if row else None


def _blacklisted(sheet: FactSheet) -> Finding | None:
    ready = {str(item).split(" ")[0] for item in sheet.items_of("kernel.module_files")}
    for line in sheet.items_of("npu.modprobe_blacklist"):
        file, _, rest = str(line).partition(": ")
        name = rest.split()[1] if len(rest.split()) > 1 else ""
        if name in ready or not ready:
            return make_finding("NPU-K016", str(line), line=rest, driver=name, file=file)
    return None


def _not_built(sheet: FactSheet) -> Finding | None:
    options = sheet.table("kernel.npu_options")
    if not options or sheet.items_of("kernel.module_files") or sheet.items_of("kernel.npu_modules"):
        return None
    built = {options.get("CONFIG_ROCKCHIP_RKNPU"), options.get("CONFIG_DRM_ACCEL_ROCKET")} & {"y", "m"}
    if built:
        return None
    return make_finding(
        "NPU-K003", evidence(sheet, "kernel.npu_options"), release=sheet.text("kernel.release") or "unknown"
    )


def _no_node(sheet: FactSheet) -> Finding | None:
    if sheet.value("npu.dt_nodes") != [] or sheet.rows("npu.platform_devices"):
        return None
    return make_finding("NPU-K006", evidence(sheet, "npu.dt_nodes", "npu.platform_devices"))


def _not_bound(sheet: FactSheet) -> Finding:
    options = sheet.table("kernel.npu_options")
    ready = [str(item) for item in sheet.items_of("kernel.module_files")]
    module = next((item.split(" ")[0] for item in ready if "(module)" in item), None)
    if module is None and options.get("CONFIG_ROCKCHIP_RKNPU") == "m":
        module = "rknpu"
    if module is None and options.get("CONFIG_DRM_ACCEL_ROCKET") == "m":
        module = "rocket"
    names = ready or [name for name in options if options[name] in ("y", "m") and ("RKNPU" in name or "ROCKET" in name)]
    return make_finding(
        "NPU-K004",
        evidence(sheet, "npu.platform_devices", "kernel.module_files"),
        drivers=", ".join(names[:4]) or "not known",
        command=f"sudo modprobe {module}" if module else "sudo dmesg | grep -iE 'rknpu|rocket|npu' | head -40",
    )


def kernel_and_driver(sheet: FactSheet) -> Iterator[Finding]:
    release = sheet.text("kernel.release") or ""
    series = (version(release) or ())[:2]
    number = driver(sheet)
    if series == (5, 10) and re.search(r"rkr6\b", release) and has_rknpu(sheet):
        yield make_finding("NPU-K007", evidence(sheet, "kernel.release"), release=release)
    vendor = sheet.text("npu.stack") in ("vendor-drm", "vendor-misc")
    if (
        vendor
        and series == (6, 1)
        and number is not None
        and number < (0, 9, 5)
        and number not in ((0, 9, 2), (0, 9, 3))
    ):
        yield make_finding(
            "NPU-K008",
            evidence(sheet, "npu.driver_version", "kernel.release"),
            driver=sheet.text("npu.driver_version"),
            release=release,
        )


def layout(sheet: FactSheet) -> Iterator[Finding]:
    if sheet.text("npu.stack") == "out-of-tree-split":
        yield make_finding("NPU-K013", evidence(sheet, "npu.stack_basis"))


def regulator(sheet: FactSheet) -> Iterator[Finding]:
    if (
        sheet.text("soc.family") == "rk356x"
        and sheet.text("npu.regulator") is None
        and sheet.text("container.kind") == "none"
    ):
        yield make_finding("NPU-K014", evidence(sheet, "npu.regulator"), soc=sheet.text("soc.name"))


RULES = (rocket, no_driver, kernel_and_driver, layout, regulator)
