# SPDX-License-Identifier: Apache-2.0
"""The terminal page of a comparison. Reads the JSON document alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.text import inert, table, wrapped

_WIDTH = 100
_SHOWN_LAYERS = 12


def render(document: dict[str, Any]) -> str:
    """Tables of the back ends, then of KV types, then what the figures mean."""
    lines = [f"Model {inert(document['model'])}", _covered(document)]
    if document["backends"]:
        lines += ["", *_backends(document)]
    if document["kv"]:
        lines += ["", *_kv(document)]
    for note in document["notes"]:
        lines += wrapped(inert(note), "", _WIDTH)
    return "\n".join(lines) + "\n"


def _covered(document: dict[str, Any]) -> str:
    text = document["text"]
    return f"{text['tokens']:,} tokens in {text['chunks']} chunks, {text['rows']:,} rows judged, intervals of 95 %"


def _backends(document: dict[str, Any]) -> list[str]:
    reference, *others = document["backends"]
    lines = [f"Reference {inert(reference['backend'])}: perplexity {_interval(reference['perplexity'], 3)}"]
    headers = ("against it", "KL mean", "median", "max", "same top", "perplexity", "ratio")
    rows = [
        (
            inert(entry["backend"]),
            _interval(entry["kl_mean"], 5),
            f"{entry['kl_median']:.2g}",
            f"{entry['kl_max']:.2g}",
            _interval(entry["same_top"], 4),
            _interval(entry["perplexity"], 3),
            _interval(entry["perplexity_ratio"], 4),
        )
        for entry in others
    ]
    if rows:
        lines += table(rows, headers, ("left", *("right",) * 6))
    for entry in document["backends"]:
        lines += _of_one(entry)
    return lines


def _of_one(entry: dict[str, Any]) -> list[str]:
    name = inert(entry["backend"])
    lines = []
    floor = entry["floor"]
    if floor is not None:
        lines += wrapped(
            f"norms off by 1e-7 alone give KL {floor['kl_mean']['value']:.2g}, same top "
            f"{floor['same_top']['value']:.3f}; token by token {floor['alone_rows_equal']} of "
            f"{floor['alone_rows']} rows have the same bits",
            "  ",
            _WIDTH,
            f"{name}: ",
        )
    full = entry["saturation"]
    if full is not None:
        shares = f"{100 * full['at_rim'] / full['elements']:.3f}% at the rim, {full['clipped']:,} beyond it"
        worst = ", ".join(f"{inert(row['name'])} {row['clipped']:,}" for row in full["worst"])
        lines += wrapped(
            f"{full['elements']:,} activations quantised, {shares}" + (f" ({worst})" if worst else ""),
            "  ",
            _WIDTH,
            f"{name}: ",
        )
    if entry.get("layers"):
        lines += wrapped(f"NMSE behind layer {_layers(entry['layers'])}", "  ", _WIDTH, f"{name}: ")
    if entry.get("changed_tops"):
        lines.append(
            f"{name}: {entry['changed_tops']} other tops, {entry['changed_near_ties']} of them near ties of the "
            f"reference; median gap {entry['changed_gap_median']:.3g}"
        )
    if "matmuls" in entry:
        lines += wrapped(_matmuls(entry["matmuls"]), "  ", _WIDTH, f"{name}: ")
    if entry.get("simulated"):
        lines += wrapped(inert(entry["note"]), "  ", _WIDTH, f"{name}: ")
    return lines


def _layers(rows: Sequence[dict[str, Any]]) -> str:
    step = max(1, -(-len(rows) // _SHOWN_LAYERS))
    shown = [row for i, row in enumerate(rows) if i % step == 0 or i == len(rows) - 1]
    return ", ".join(f"{row['layer']}: {_number(row['nmse'])}" for row in shown)


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1e}"


def _matmuls(found: dict[str, Any]) -> str:
    if found["reason"] is not None:
        return f"matmuls not compared, because {inert(found['reason'])}"
    if found["equal"]:
        return f"all {found['compared']:,} matmuls are the reference's, bit for bit"
    parts = [f"of {found['compared']:,} matmuls"]
    if found["products_differ"]:
        parts.append(f"{found['products_differ']:,} give another product, first {inert(found['first'])};")
    if found["activations_differ"]:
        parts.append(
            f"{found['activations_differ']:,} were given another activation, first {inert(found['first_activation'])}"
        )
    return " ".join(parts).rstrip(";")


def _kv(document: dict[str, Any]) -> list[str]:
    first = document["kv"][0]
    headers = ("depth", "K/V", "cache MB", "KL mean", "max", "same top", "perplexity ratio")
    rows = [
        (
            f"{entry['depth']:,}",
            f"{entry['type_k']}/{entry['type_v']}",
            f"{entry['cache_bytes'] / 1e6:,.2f}",
            _interval(entry["kl_mean"], 6),
            f"{entry['kl_max']:.2g}",
            _interval(entry["same_top"], 4),
            _interval(entry["perplexity_ratio"], 4),
        )
        for entry in sorted(document["kv"], key=lambda entry: int(entry["depth"]))
    ]
    title = f"KV cache types against {first['type_k']}/{first['type_v']}, {first['rows']} rows behind each depth"
    return [title, *table(rows, headers, ("right", "left", *("right",) * 5))]


def _interval(found: dict[str, Any] | None, digits: int) -> str:
    """The value with its 95 % interval, or the value alone where there is none."""
    if found is None:
        return "unknown"
    value = f"{found['value']:.{digits}f}"
    if found["low"] is None:
        return value
    return f"{value} ({found['low']:.{digits}f}-{found['high']:.{digits}f})"
