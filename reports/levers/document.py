# SPDX-License-Identifier: Apache-2.0
"""The list of levers of one board as a JSON document, and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reports.contract import JsonValue
from reports.forecast.board import Board
from reports.forecast.quantity import Quantity
from reports.levers import bench_levers, cpu_levers, npu_levers
from reports.levers.verdict import ORDER, UNMEASURED, Verdict
from reports.llama_bench import BenchRow
from reports.text import inert, wrapped

FORMAT = "rknpu-kit levers"
FORMAT_VERSION = 1
WIDTH = 100
SIMULATED = "SIMULATED: these verdicts stand on a report of the mock, not of a board."


def verdicts(
    board: Board,
    rows: Sequence[BenchRow],
    *,
    cpu_share: Quantity | None = None,
    of_model: Sequence[Verdict] = (),
) -> list[Verdict]:
    """Every lever's verdict: those that pay first, largest gain first, then the others, the undecided last."""
    found = [
        *cpu_levers.pinning(board),
        *cpu_levers.sharing(board),
        *cpu_levers.reading_threads(board),
        *npu_levers.cores(board),
        *npu_levers.k_split(board),
        *npu_levers.m_bucketing(board),
        *cpu_levers.pipelining(board, cpu_share),
        *npu_levers.layout(board),
        *npu_levers.int4(board),
        *npu_levers.verify(board),
        *bench_levers.kv_and_flash(rows),
        *bench_levers.threads(rows),
        *bench_levers.cpu_or_npu(rows),
        *of_model,
    ]
    return sorted(found, key=_order)


def _order(verdict: Verdict) -> tuple[int, float]:
    gain = verdict.gain.value if verdict.gain is not None else None
    return ORDER.index(verdict.verdict), -(gain or 0.0)


def levers(
    report: Mapping[str, Any],
    rows: Sequence[BenchRow],
    *,
    cpu_share: Quantity | None = None,
    of_model: Sequence[Verdict] = (),
) -> dict[str, JsonValue]:
    """The document. ``of_model``: verdicts that need a model, such as the reuse of activations."""
    board = Board(report)
    found = verdicts(board, rows, cpu_share=cpu_share, of_model=of_model)
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "simulated": board.simulated,
        "levers": [verdict.as_json() for verdict in found],
        "doubts": list(board.conditions()),
    }


def render(document: Mapping[str, Any]) -> str:
    """The page, with a newline at its end."""
    lines = ["rknpu-kit levers: what pays on this board, and which measurement says so"]
    if document["simulated"]:
        lines.append(SIMULATED)
    for word in dict.fromkeys(row["verdict"] for row in document["levers"]):
        lines += ["", f"{word[0].upper()}{word[1:]}"]
        for row in document["levers"]:
            if row["verdict"] == word:
                lines += _entry(row)
    if document["doubts"]:
        words = f"{len(document['doubts'])} of the rows used were measured under conditions that were not valid:"
        lines += ["", *wrapped(words, "  ", WIDTH, "")]
        lines += [line for doubt in document["doubts"][:8] for line in wrapped(inert(doubt, 150), "    ", WIDTH, "  ")]
    if document["simulated"]:
        lines += ["", SIMULATED]
    return "\n".join(lines) + "\n"


def gain_words(row: Mapping[str, Any]) -> str:
    """``1.19x (1.18-1.21) of a prompt``; empty where there is no figure.

    ``<=`` where parts that the lever does not change are left out of both times: they would bring it closer to 1.
    """
    gain = row["gain"]
    if gain is None or gain["value"] is None:
        return ""
    spread = "" if gain["low"] == gain["high"] else f" ({gain['low']:.3g}-{gain['high']:.3g})"
    most = "<= " if gain["state"] == "bound" else ""
    return f"{most}{gain['value']:.3g}x{spread}" + (f" of {inert(row['scope'], 40)}" if row["scope"] else "")


def _entry(row: Mapping[str, Any]) -> list[str]:
    gain = gain_words(row)
    head = f"{inert(row['lever'], 100)}: {gain}; " if gain else f"{inert(row['lever'], 100)}: "
    lines = wrapped(f"{head}{inert(row['why'], 300)}", "      ", WIDTH, "  ")
    name = "would decide" if row["verdict"] == UNMEASURED else "decided by"
    decided = "; ".join(inert(each, 120) for each in row["decided_by"])
    if decided:
        lines += wrapped(f"{name}: {decided}", "        ", WIDTH, "      ")
    if row["campaign"]:
        lines += wrapped(inert(row["campaign"], 200), "        ", WIDTH, "      ")
    return lines
