# SPDX-License-Identifier: Apache-2.0
"""Everything that can be known about a board by looking: ``collect(system, emit)`` gives the sheet of facts.

One module per concern, run in the order of ``CONCERNS``: later ones lean on earlier ones. The list of keys with their
meaning stands in README.md beside this file.
"""

from __future__ import annotations

from collections.abc import Callable

from probes.facts import (
    container,
    cpu,
    ddr,
    devices,
    identity,
    iommu,
    irq,
    kernel,
    klog,
    limits,
    memory,
    npu,
    stack,
    tenants,
    thermal,
    udev,
    versions,
)
from probes.facts.sheet import FactSheet, Pen
from probes.privilege import put_note
from probes.system import PathNotListed, System
from reports.events import Event

__all__ = ["FactSheet", "collect"]

CONCERNS: tuple[tuple[str, Callable[[Pen], None]], ...] = (
    ("board", identity.board),
    ("container", container.collect),
    ("kernel", kernel.collect),
    ("klog", klog.collect),
    ("stack", stack.collect),
    ("devices", devices.collect),
    ("driver", versions.driver),
    ("load", npu.load),
    ("soc", identity.soc),
    ("cores", npu.cores),
    ("clocks", npu.clocks),
    ("libraries", versions.libraries),
    ("iommu", iommu.collect),
    ("ddr", ddr.collect),
    ("memory", memory.collect),
    ("cpu", cpu.collect),
    ("thermal", thermal.collect),
    ("irq", irq.collect),
    ("limits", limits.collect),
    ("tenants", tenants.collect),
    ("udev", udev.collect),
    ("privilege", put_note),
)


def collect(system: System, emit: Callable[[Event], None]) -> FactSheet:
    """Look at the board behind ``system``; send each fact to ``emit`` as it is found, and give them all.

    Never raises for what the board holds. A concern that fails for a reason of its own costs the rest of its facts and
    leaves ``probe.<concern>`` with the reason.
    """
    sheet = FactSheet()
    pen = Pen(system, sheet, emit)
    for name, concern in CONCERNS:
        try:
            concern(pen)
        except PathNotListed:
            raise
        except Exception as error:  # one concern must not cost the report
            pen.put(f"probe.{name}", None, f"probes.facts, {name}", reason=f"{type(error).__name__}: {error}"[:300])
    return sheet
