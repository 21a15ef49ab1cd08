# SPDX-License-Identifier: Apache-2.0
"""The terminal page of a comparison. Reads the JSON document alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reports.text import inert, table, wrapped

_WIDTH = 100
_NOISE = (
    "By noise: the back end against itself with its norms off by 1e-7; alone = batch: rows that have the same bits "
    "token by token as in a batch."
)
_SHOWN_LAYERS = 5


def render(document: dict[str, Any]) -> str:
    """Tables of the back ends, then of KV types, then what the figures mean."""
    lines = [f"Model {inert(document['model'])}", _covered(document)]
    if document["backends"]:
        lines += ["", *_backends(document)]
    if document["kv"]:
        lines += ["", *_kv(document)]
    if document["backends"] and document["backends"][0]["floor"] is not None:
        lines += wrapped(_NOISE, "", _WIDTH)
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
    lines += ["", *_details(document["backends"])]
    for entry in document["backends"]:
        lines += _of_one(entry)
    return lines


def _details(entries: Sequence[dict[str, Any]]) -> list[str]:
    """What noise alone would do, how full the integers are, and how the changed tops lie."""
    headers = ("", "KL by noise", "same top by noise", "alone = batch", "at rim", "beyond", "other tops", "near ties")
    return table([_detail_row(entry) for entry in entries], headers, ("left", *("right",) * 7))


def _detail_row(entry: dict[str, Any]) -> tuple[str, ...]:
    floor, full = entry["floor"], entry["saturation"]
    noise = ("", "", "")
    if floor is not None:
        noise = (
            f"{floor['kl_mean']['value']:.2g}",
            f"{floor['same_top']['value']:.3f}",
            f"{floor['alone_rows_equal']}/{floor['alone_rows']}",
        )
    rim = ("", "")
    if full is not None:
        rim = (f"{100 * full['at_rim'] / full['elements']:.3f}%", f"{100 * full['clipped'] / full['elements']:.3f}%")
    tops = (str(entry["changed_tops"]), str(entry["changed_near_ties"])) if "changed_tops" in entry else ("", "")
    return (inert(entry["backend"]), *noise, *rim, *tops)


def _of_one(entry: dict[str, Any]) -> list[str]:
    name = inert(entry["backend"])
    lines = []
    full = entry["saturation"]
    if full is not None and full["worst"]:
        worst = ", ".join(f"{inert(row['name'])} {row['clipped'] / row['elements']:.2%}" for row in full["worst"])
        lines += wrapped(f"most beyond the rim: {worst}", "  ", _WIDTH, f"{name}: ")
    if entry.get("layers"):
        lines += wrapped(f"NMSE behind layer {_layers(entry['layers'])}", "  ", _WIDTH, f"{name}: ")
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
