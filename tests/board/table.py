# SPDX-License-Identifier: Apache-2.0
"""TABLE.md: sample boards and troubles with what the kit finds. ``python -m tests.board.table`` writes it anew."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from probes.facts import FactSheet, collect
from probes.findings import judge
from probes.system import System
from reports.contract import Finding, Severity
from tests.board.expected import BOARDS
from tests.board.scenarios import TIER3, VERDICTS
from tests.board.tree import build

Known = Callable[[tuple[str, ...]], tuple[FactSheet, list[Finding]]]
PLACE = Path(__file__).resolve().parent / "TABLE.md"


def found(root: Path, tables: tuple[str, ...]) -> tuple[FactSheet, list[Finding]]:
    sheet = collect(System(build(root, *tables)), lambda event: None)
    return sheet, judge(sheet)


def remembering(place: Path) -> Known:
    """As ``found``, each tree built and looked at once, below ``place``."""
    memory: dict[tuple[str, ...], tuple[FactSheet, list[Finding]]] = {}

    def known(tables: tuple[str, ...]) -> tuple[FactSheet, list[Finding]]:
        if tables not in memory:
            memory[tables] = found(place / f"tree{len(memory)}", tables)
        return memory[tables]

    return known


def shown_first(findings: list[Finding]) -> str:
    """The first finding by code, leaving out notes about defaults; ``nothing wrong`` where there is none."""
    return findings[0].code if findings else "nothing wrong"


def table(known: Known) -> str:
    """Both tables as Markdown, from what the kit finds on each tree."""
    lines = [
        "# Boards and troubles that the tests know",
        "",
        "Written by `python -m tests.board.table`.",
        "",
    ]
    lines += ["## Sample boards", ""]
    head = (
        "board",
        "SoC",
        "stack",
        "driver",
        "librknnrt",
        "cores",
        "clusters",
        "DDR",
        "IOMMU",
        "node",
        "first finding",
        "values from",
    )
    lines += _row(head), _row(["---"] * len(head))
    for board in BOARDS:
        sheet, findings = known((board.table,))
        clusters = " + ".join(f"{len(row['cpus'])} {row['core'] or 'unknown'}" for row in sheet.rows("cpu.clusters"))
        ddr = f"{sheet.value('ddr.type') or 'unknown'}, {sheet.value('ddr.theoretical_gbps') or '?'} GB/s"
        iommu = f"{sheet.value('iommu.mode')}, {sheet.value('iommu.windows')} windows"
        values = [
            sheet.value(key) or "unknown"
            for key in ("soc.name", "npu.stack", "npu.driver_version", "runtime.version", "npu.cores")
        ]
        lines.append(
            _row(
                [
                    board.name,
                    *values,
                    clusters,
                    ddr,
                    iommu,
                    sheet.value("npu.device_node"),
                    _finding(findings),
                    board.source,
                ]
            )
        )
    for title, rows in (("Troubles people report", TIER3), ("Bring-up troubles", VERDICTS)):
        lines += ["", f"## {title}", "", _row(("trouble", "first finding", "reported in")), _row(["---"] * 3)]
        for scenario in rows:
            _, findings = known(scenario.tables)
            lines.append(_row([scenario.name, _finding(findings, serious=True), scenario.source]))
    return "\n".join(lines) + "\n"


def _finding(findings: list[Finding], *, serious: bool = False) -> str:
    shown = [finding for finding in findings if finding.severity is not Severity.INFO or not serious]
    if shown:
        return f"{shown[0].code} {shown[0].what}"
    notes = f" (notes: {', '.join(finding.code for finding in findings)})" if findings else ""
    return f"nothing wrong{notes}"


def _row(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PLACE.write_text(table(remembering(Path(folder))), encoding="utf-8")
