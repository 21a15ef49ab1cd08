# SPDX-License-Identifier: Apache-2.0
"""A small good report to be damaged: some of every kind of record of a real run of the mock."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

SAMPLE = Path(__file__).parent.parent / "reports_versions" / "format_1.json"
FACTS = (
    *("board.model", "soc.name", "cpu.clusters", "cpu.governors", "kernel.release", "libraries", "limits.nofile_soft"),
    *(
        "memory.total_bytes",
        "npu.cores",
        "npu.stack",
        "npu.governor",
        "ddr.theoretical_gbps",
        "tenants",
        "thermal.max_c",
    ),
)
ROWS = ("gemm_rate", "core_scaling", "npu_stream", "shape_limit", "dtype_support", "cpu_bandwidth")
EVIDENCE = ("scaling_against_one", "at_least", "share_of_rated", "net_gbps", "run_us")
CONDITIONS = ("gemm_rate", "cpu_bandwidth")
"""Rows that keep the conditions they were measured under: of one shape in every row, and half of the bytes."""


@pytest.fixture(scope="session")
def good() -> dict[str, Any]:
    report: dict[str, Any] = json.loads(SAMPLE.read_text(encoding="utf-8"))
    rows = {row["name"]: row for row in reversed(report["measurements"])}
    report["measurements"] = [rows[name] for name in ROWS]
    for row in report["measurements"]:
        kept = (*EVIDENCE, "conditions") if row["name"] in CONDITIONS else EVIDENCE
        row["evidence"] = {key: value for key, value in row["evidence"].items() if key in kept}
        row["method"] = row["method"][:80]
    report["facts"] = {key: report["facts"][key] for key in FACTS}
    report["findings"], report["steps"] = report["findings"][:2], report["steps"][:3]
    return report
