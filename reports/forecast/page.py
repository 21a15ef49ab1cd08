# SPDX-License-Identifier: Apache-2.0
"""The forecast as a terminal page. Everything it shows is in the document; nothing is worked out here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.text import inert, table, wrapped

WIDTH = 100
SIMULATED = "SIMULATED: this forecast stands on a report of the mock, not of a board."


def render(document: dict[str, Any]) -> str:
    """The page, one text with a newline at its end."""
    lines = [*_head(document)]
    for part in (_fits, _kv, _rates, _depths, _crossover, _speculation, _levers, _why, _doubts):
        made = part(document)
        if made:
            lines += ["", *made]
    if document["simulated"]:
        lines += ["", SIMULATED]
    return "\n".join(lines) + "\n"


def tps(quantity: dict[str, Any]) -> str:
    """``2.35 (2.2-2.5)``; ``<= 2.4 (2.3-2.6)`` where parts are left out of its time; ``unknown``."""
    if quantity["value"] is None:
        return "unknown"
    value, low, high = (_figure(quantity[key]) for key in ("value", "low", "high"))
    spread = f" ({low}-{high})" if low != high else ""
    return f"{'<= ' if quantity['state'] == 'bound' else ''}{value}{spread}"


def _figure(value: float) -> str:
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


def _head(document: dict[str, Any]) -> list[str]:
    about = document["model"]
    name = inert(about["name"] or "model without a name", 80)
    lines = [f"rknpu-kit forecast: {name} on {inert(document['soc'], 40)}"]
    if document["simulated"]:
        lines += [SIMULATED]
    size = f"{about['weights'] / 1e9:.2f} billion matmul weights, {about['tensor_bytes'] / 1e9:.2f} GB of tensors"
    layers = f"{about['layers']} layers, " if about["layers"] else ""
    lines.append(f"{inert(about['architecture'], 40)}, {layers}{size}")
    if document["refused"]:
        lines += ["", *wrapped(f"No rates: {document['refused']}.", "  ", WIDTH, "")]
    return lines


def _fits(document: dict[str, Any]) -> list[str]:
    words = {True: "fits", False: "does NOT fit", None: "not known"}
    lines = ["Does it fit?"]
    for name, fit in document["fits"].items():
        sizes = f"A {fit['a_bytes'] / 1e6:.1f} and C {fit['c_bytes'] / 1e6:.1f} MB at M = 512"
        gigabytes = ", ".join(f"{size / 1e9:.2f}" for size in fit["domains"])
        lines += wrapped(
            f"{name}: {words[fit['fits']]}. {fit['routed']} weights on the NPU, {fit['left']} on the CPU; device "
            f"buffers {fit['weight_bytes'] / 1e9:.2f} GB (domains: {gigabytes or 'none'}), {sizes}, "
            f"{fit['graph_splits']} graph splits",
            "    ",
            WIDTH,
            "  ",
        )
        for need in fit["needs"]:
            if need["fits"] is not True:
                mark = "no" if need["fits"] is False else "?"
                amount = "" if need["needed"] is None else f" needs {_amount(need['needed'])}"
                there = "" if need["there"] is None else f" of {_amount(need['there'])}"
                lines += wrapped(f"[{mark}] {need['what']}{amount}{there}: {need['why']}", "        ", WIDTH, "    ")
    return lines


def _amount(value: int) -> str:
    return f"{value / 1e9:.2f} GB" if value >= 1 << 24 else str(value)


def _kv(document: dict[str, Any]) -> list[str]:
    by_type: dict[str, dict[str, int | None]] = document["kv_bytes"]
    contexts = list(next(iter(by_type.values())))
    if all(size is None for sizes in by_type.values() for size in sizes.values()):
        return ["Keys and values: unknown for this architecture"]
    rows = [[kind, *(_megabytes(sizes[context]) for context in contexts)] for kind, sizes in by_type.items()]
    heads = ["cache", *(f"{context} tokens" for context in contexts)]
    return ["Keys and values, MB", *table(rows, heads, ["left", *["right"] * len(contexts)])]


def _megabytes(size: int | None) -> str:
    return "-" if size is None else f"{size / 1e6:.1f}"


def _rates(document: dict[str, Any]) -> list[str]:
    rows = [
        [
            row["pipeline"],
            str(row["cores"]),
            inert(row["cpus"] or "-", 20),
            tps(row["decode_tps"]),
            tps(row["prefill_tps"]),
        ]
        for row in document["rates"]
    ]
    if not rows:
        return []
    heads = ["pipeline", "cores", "CPUs", "decode", "prompt of 512"]
    lines = ["Tokens per second (interval of the samples; <= where parts of the time are not measured)"]
    lines += table(rows, heads, ["left", "right", "left", "left", "left"])
    for name, note in dict.fromkeys((row["pipeline"], row["note"]) for row in document["rates"]):
        if note:
            lines += wrapped(f"{name}: {note}", "    ", WIDTH, "  ")
    return lines


def _depths(document: dict[str, Any]) -> list[str]:
    rows = [[str(row["depth"]), row["kv"], tps(row["decode_tps"])] for row in document["depths"]]
    if not rows:
        return []
    return [
        "Decode behind a context, first pipeline",
        *table(rows, ["depth", "cache", "decode"], ["right", "left", "left"]),
    ]


def _crossover(document: dict[str, Any]) -> list[str]:
    cross = document["crossover"]
    if (
        cross["missing"]
        and cross["decode_weights"] is None
        and cross["prefill_rows"] is None
        and cross["why"] == "unknown"
    ):
        return ["CPU or NPU: unknown; missing " + ", ".join(cross["missing"])]
    lines = ["CPU or NPU on this board (the CPU at its best, so the NPU wins no later)"]
    lines += wrapped(cross["why"], "    ", WIDTH, "  ")
    if cross["prefill_rows"]:
        words = f"prompt: at K = N = {cross['side']} the NPU is faster from {cross['prefill_rows']} rows on"
    elif cross["missing"]:
        words = "prompt: unknown; missing " + ", ".join(cross["missing"])
    else:
        words = f"prompt: at K = N = {cross['side']} the CPU's measured peak is faster at every number of rows"
    return [*lines, *wrapped(words, "    ", WIDTH, "  ")]


def _speculation(document: dict[str, Any]) -> list[str]:
    told = document["speculation"]
    rows = [row for row in told["rows"] if not row.get("missing")]
    if document["refused"]:
        return []
    if not rows:
        return ["Speculation: unknown; missing " + ", ".join(told["missing"])]
    acceptances = list(rows[0]["rates"])
    cells = [
        [
            row["drafter"],
            str(row["length"]),
            "never" if row["never"] else f"{row['break_even']:.2f}",
            *(_figure(row["rates"][a]) for a in acceptances),
        ]
        for row in rows
    ]
    heads = ["draft", "length", "pays from", *(f"at {a}" for a in acceptances)]
    lines = ["Speculation: acceptance from which it pays, and tokens per second at most, by acceptance"]
    lines += table(cells, heads, ["left", "right", "right", *["right"] * len(acceptances)])
    for note in told["notes"]:
        lines += wrapped(note, "    ", WIDTH, "  ")
    return [*lines, *wrapped("Not in it: " + "; ".join(told["omitted"]), "    ", WIDTH, "  ")]


def _levers(document: dict[str, Any]) -> list[str]:
    rows = [row for row in document.get("levers") or [] if row["gain"] and row["gain"]["value"] is not None]
    if not rows:
        return []
    cells = [
        [
            ("<= " if row["gain"]["state"] == "bound" else "") + f"{row['gain']['value']:.2f}x",
            inert(row["scope"], 20),
            row["verdict"],
            inert(row["lever"], 60),
        ]
        for row in rows
    ]
    lines = ["Levers, largest gain first; rknpu-report levers tells which measurement decided each"]
    return [*lines, *table(cells, ["gain", "of", "verdict", "lever"], ["right", "left", "left", "left"])]


def _why(document: dict[str, Any]) -> list[str]:
    missing: dict[str, None] = {}
    omitted: dict[str, None] = {}
    for row in document["rates"]:
        for key in ("decode_tps", "prefill_tps"):
            missing.update(dict.fromkeys(row[key]["missing"]))
            omitted.update(dict.fromkeys(row[key]["omitted"]))
    lines: list[str] = []
    if missing:
        lines += wrapped("Unknown because these were not measured: " + "; ".join(missing), "  ", WIDTH, "")
    if omitted:
        lines += wrapped("'<=' leaves out: " + "; ".join(omitted), "  ", WIDTH, "")
    for note in document["notes"]:
        lines += wrapped(note, "  ", WIDTH, "")
    return lines


def _doubts(document: dict[str, Any]) -> list[str]:
    doubts: Sequence[str] = document["doubts"]
    if not doubts:
        return []
    lines = [f"{len(doubts)} of the rows used were measured under conditions that were not valid:"]
    for doubt in doubts[:12]:
        lines += wrapped(inert(doubt, 150), "    ", WIDTH, "  ")
    return lines if len(doubts) <= 12 else [*lines, f"  and {len(doubts) - 12} more (--json shows all)"]
