# SPDX-License-Identifier: Apache-2.0
"""The terminal page of an inspected model. Reads the JSON document alone; every text in it is a stranger's."""

from __future__ import annotations

from typing import Any

from reference_engine.npu_page import npu_lines
from reports.text import inert, table, wrapped

_SHOWN_FINDINGS = 20
_NOT_SHOWN = "The weights themselves were not read."


def render(document: dict[str, Any], width: int = 100) -> str:
    """The page: verdict first, then findings with next steps, then what the file holds."""
    lines = [f"Model {inert(document['file'])}"]
    if document["readable"]:
        lines += _summary(document)
    lines += ["", *wrapped(_verdict(document), "", width)]
    lines += _findings(document["findings"], width)
    if document["readable"]:
        lines += _hyper_parameters(document)
        lines += _vocabulary(document["vocabulary"])
        lines += _tensors(document, width)
        if "npu" in document:
            lines += npu_lines(document["npu"], width)
    return "\n".join(lines) + "\n"


def _summary(document: dict[str, Any]) -> list[str]:
    name, architecture, licence = (inert(document[key] or "not given") for key in ("name", "architecture", "license"))
    files = _count(len(document["parts"]), "file")
    sizes = f"{_bytes(document['file_bytes'])}, header {_bytes(document['header_bytes'])}"
    return [
        f"{name}, architecture {architecture}, licence {licence}",
        f"GGUF version {document['gguf_version']}, {files}, {sizes}",
    ]


def _verdict(document: dict[str, Any]) -> str:
    errors = sum(finding["severity"] == "error" for finding in document["findings"])
    others = len(document["findings"]) - errors
    if not document["readable"]:
        return "This file was refused; nothing else is known about it."
    covered = ", ".join(inert(item) for item in document["checked"])
    matches = document.get("sha256_matches")
    if errors and matches:
        return f"The hash matches, yet {_count(errors, 'error')} stand in the way. Checked: {covered}. {_NOT_SHOWN}"
    hashed = " The hash matches." if matches else ""
    what = (
        f"{_count(errors, 'error')} and {_count(others, 'warning')} found"
        if errors or others
        else "Nothing wrong found"
    )
    return f"{what}.{hashed} Checked: {covered}. {_NOT_SHOWN}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _findings(findings: list[dict[str, Any]], width: int) -> list[str]:
    lines: list[str] = []
    told: set[str] = set()
    for finding in findings[:_SHOWN_FINDINGS]:
        lines += [
            "",
            *wrapped(inert(finding["what"]), "  ", width, f"{finding['severity'].upper()} {finding['code']}: "),
        ]
        lines += wrapped(inert(finding["evidence"]), "      ", width, "  at: ")
        if finding["code"] not in told:
            # The reason and the remedy belong to the code: said once.
            told.add(finding["code"])
            lines += wrapped(inert(finding["why"]), "       ", width, "  why: ")
            for step in finding["fix"]:
                lines += wrapped(inert(step), "      ", width, "  do: ")
    if len(findings) > _SHOWN_FINDINGS:
        lines += ["", f"... and {len(findings) - _SHOWN_FINDINGS} more findings; --json lists them all"]
    return lines


def _hyper_parameters(document: dict[str, Any]) -> list[str]:
    rows = [(inert(key), _value(value)) for key, value in document["hyper_parameters"].items()]
    return ["", "Hyper-parameters", *_indented(table(rows, ("key", "value"), ("left", "left")))] if rows else []


def _value(value: Any) -> str:
    if isinstance(value, list):
        return inert(" ".join(str(item) for item in value), 80)
    return f"{value:.8g}" if isinstance(value, float) else inert(value, 80)


def _vocabulary(vocabulary: dict[str, Any]) -> list[str]:
    rows = [(key, inert(value)) for key, value in vocabulary.items() if value is not None]
    return ["", "Vocabulary", *_indented(table(rows, ("what", "value"), ("left", "left")))] if rows else []


def _tensors(document: dict[str, Any], width: int) -> list[str]:
    tensors = document["tensors"]
    total = max(tensors["size_bytes"], 1)
    rows = [
        (
            inert(row["type"]),
            str(row["count"]),
            f"{row['elements']:,}",
            f"{row['size_bytes']:,}",
            f"{100 * row['size_bytes'] / total:.1f}%",
            f"{8 * row['size_bytes'] / row['elements']:.2f}",
        )
        for row in tensors["by_type"]
    ]
    lines = ["", f"Tensors: {tensors['count']}, {tensors['elements']:,} elements, {_bytes(tensors['size_bytes'])}"]
    if rows:
        headers = ("type", "tensors", "elements", "bytes", "share", "bits/element")
        lines += _indented(table(rows, headers, ("left", *("right",) * 5)))
    unknown = document["tensors_unknown"]
    if unknown["count"]:
        names = ", ".join(inert(name, 64) for name in unknown["first"])
        lines += wrapped(f"{_count(unknown['count'], 'tensor')} the engine does not use: {names}", "  ", width, "  ")
    return lines


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line for line in lines]


def _bytes(count: int) -> str:
    return f"{count:,} bytes ({count / 1e6:,.1f} MB)"
