# SPDX-License-Identifier: Apache-2.0
"""The NPU section of an inspected model on the terminal. Reads the JSON document alone."""

from __future__ import annotations

from typing import Any

from reference_engine.npu_inspect import PREFILL_ROWS, USUAL_DESCRIPTORS
from reports.text import inert, table, wrapped

_HEADERS = (
    "pipeline",
    "weights",
    "NPU MB",
    "domains",
    f"A+C MB, M={PREFILL_ROWS}",
    "contexts",
    "descriptors",
    "splits",
)


def npu_lines(section: dict[str, Any], width: int) -> list[str]:
    """A table of the pipelines, then what stays on the CPU and why, and what sharing activations could save."""
    lines = ["", f"On the NPU of {inert(section['soc'])}, as rk-llama.cpp would place it"]
    if section["unavailable"]:
        return lines + wrapped(inert(section["unavailable"]), "  ", width, "  ")
    entries = section["pipelines"]
    lines += ["  " + line for line in table([_row(entry) for entry in entries], _HEADERS, ("left", *("right",) * 7))]
    for entry in entries:
        for text in _notes(entry):
            lines += wrapped(text, "    ", width, f"  {inert(entry['pipeline'])}: ")
    return lines


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    rows = str(PREFILL_ROWS)
    return (
        inert(entry["pipeline"]),
        f"{entry['routed']}/{entry['matmul_weights']}",
        f"{entry['weight_bytes'] / 1e6:,.1f}",
        str(len(entry["domain_bytes"])),
        f"{(entry['a_bytes'][rows] + entry['c_bytes'][rows]) / 1e6:,.1f}",
        f"{entry['contexts']:,}",
        f"{entry['descriptors']:,}",
        f"{entry['graph_splits']:,}",
    )


def _notes(entry: dict[str, Any]) -> list[str]:
    notes = []
    for row in entry["not_routed"]:
        names = ", ".join(inert(name, 64) for name in row["first"])
        more = ", ..." if row["count"] > len(row["first"]) else ""
        notes.append(f"{row['count']} on the CPU, because {inert(row['reason'])}: {names}{more}")
    if entry["k_split"]:
        notes.append(f"{entry['k_split']} weights have K above {entry['k_limit']} and are multiplied in several pieces")
    reuse = entry["activation_reuse"]
    if reuse["reason"]:
        notes.append(f"a quantised activation cannot be reused: {inert(reuse['reason'])}")
    elif reuse["quantisations"]:
        notes.append(
            f"reusing a quantised activation saves at most {100 * reuse['within_call']:.1f}% of quantisations within a "
            f"call of the back end, {100 * reuse['by_input']:.1f}% across calls"
        )
    if entry["descriptors"] > USUAL_DESCRIPTORS:
        notes.append(f"more descriptors than the usual limit of {USUAL_DESCRIPTORS}: raise it with ulimit -n 65536")
    notes += [f"doubt: {inert(text)}" for text in entry["doubts"]]
    return notes
