# SPDX-License-Identifier: Apache-2.0
"""What ``inspect`` knows of a model file: one JSON document, made without touching the weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reference_engine.gguf_errors import HASH, UNREADABLE, GgufError, Limits, quoted
from reference_engine.gguf_file import GgufFile, open_gguf
from reference_engine.gguf_hparams import HparamCheck, Hparams, check_hparams
from reference_engine.gguf_shapes import check_shapes, unknown_tensors
from reference_engine.gguf_values import GgufArray, Metadata
from reference_engine.gguf_vocabulary import TOKENS_KEY
from reference_engine.npu_inspect import npu_section
from reports.contract import JsonValue, by_cause, finite
from reports.text import inert

FORMAT = "rknpu-kit model inspection"
FORMAT_VERSION = 1
_HASH_BLOCK = 1 << 20
_SHOWN_TEXT = 200
_SHOWN_ITEMS = 4
_SHOWN_KEYS = 64
_SHOWN_NAMES = 8


@dataclass(frozen=True)
class Inspection:
    """``document`` is what ``--json`` prints; ``problems`` are all findings, in it too."""

    document: dict[str, JsonValue]
    problems: tuple[GgufError, ...]


def inspect(
    path: Path,
    *,
    header_only: bool = False,
    sha256: str | None = None,
    limits: Limits | None = None,
    pipelines: Sequence[str] = (),
    soc: str = "rk3588",
) -> Inspection:
    """Open, check and describe ``path``. What is wrong with the file is in the answer, never raised.

    ``sha256``: the publisher's hash of this file in hex, compared in passing. A hash that matches does not stop the
    structure from being checked: files that were published incomplete have a matching one. ``pipelines``: what of the
    model goes to the NPU of ``soc`` by each of these; ValueError for one that does not exist.
    """
    document: dict[str, JsonValue] = {}
    problems: list[GgufError] = []
    try:
        with open_gguf(path, header_only=header_only, limits=limits) as model:
            document, problems, hparams = _describe(model)
            if pipelines:
                document["npu"] = npu_section(model, hparams, pipelines, soc)
    except GgufError as error:
        problems = [error]
    readable = bool(document)
    if sha256 is not None and all(problem.code != UNREADABLE for problem in problems):
        # Of a file that was refused too: a wrong hash says that fetching it again will help.
        problems += _hash_problem(path, sha256, document)
    findings = sorted((problem.finding() for problem in problems), key=by_cause)
    head: dict[str, JsonValue] = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "file": str(path),
        "header_only": header_only,
        "readable": readable,
    }
    whole = {**head, **document, "findings": [finding.as_json() for finding in findings]}
    return Inspection(finite(whole), tuple(problems))


def _describe(model: GgufFile) -> tuple[dict[str, JsonValue], list[GgufError], Hparams | None]:
    check = check_hparams(model)
    shapes = check_shapes(model, check.hparams) if check.hparams else ()
    problems = [*model.warnings, *check.problems, *check.warnings, *shapes]
    unknown = unknown_tensors(model, check.hparams) if check.hparams else ()
    metadata = model.metadata
    document: dict[str, JsonValue] = {
        "gguf_version": model.version,
        "parts": [str(part.path.name) for part in model.parts],
        "file_bytes": model.file_bytes,
        "header_bytes": sum(part.header_bytes for part in model.parts),
        "name": _text(metadata, "general.name"),
        "license": _text(metadata, "general.license"),
        "architecture": _text(metadata, "general.architecture"),
        "hyper_parameters": _hyper_parameters(metadata, check),
        "vocabulary": _vocabulary(metadata, check),
        "tensors": _tensors(model),
        "tensors_unknown": {"count": len(unknown), "first": list(unknown[:_SHOWN_NAMES])},
        "checked": _covered(model, check),
    }
    return document, problems, check.hparams


def _covered(model: GgufFile, check: HparamCheck) -> list[JsonValue]:
    """What was looked at, so that a page without findings cannot claim more."""
    covered: list[JsonValue] = [f"{len(model.metadata)} keys", f"{len(model.tensors)} tensor table rows"]
    covered.append("no data ranges (header only)" if model.header_only else "the data range of every tensor")
    if check.hparams is not None:
        covered += ["hyper-parameters", "tensor shapes"]
    return covered


def _text(metadata: Metadata, key: str) -> str | None:
    value = metadata.get(key)
    return inert(value, _SHOWN_TEXT) if isinstance(value, str) else None


def _hyper_parameters(metadata: Metadata, check: HparamCheck) -> dict[str, JsonValue]:
    """The checked values; where the check failed, those that the file itself has under its architecture's name."""
    if check.hparams is not None:
        return {key: _short(value) for key, value in check.hparams.values.items() if value is not None}
    prefix = f"{metadata.get('general.architecture')}."
    keys = [key for key in metadata if key.startswith(prefix)]
    return {inert(key[len(prefix) :], 80): _short(metadata[key]) for key in keys[:_SHOWN_KEYS]}


def _short(value: object) -> JsonValue:
    """A value as the page shows it: one number for layers that are all alike, arrays cut."""
    if isinstance(value, tuple) and value and len(set(value)) == 1:
        value = value[0]
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, (tuple, GgufArray)):
        shown = [_short(item) for item in value[:64]]
        return shown if len(value) <= len(shown) else [*shown[:_SHOWN_ITEMS], f"... {len(value)} in all"]
    return inert(value, _SHOWN_TEXT)


def _vocabulary(metadata: Metadata, check: HparamCheck) -> dict[str, JsonValue]:
    tokens, merges = metadata.get(TOKENS_KEY), metadata.get("tokenizer.ggml.merges")
    return {
        "tokenizer": _text(metadata, "tokenizer.ggml.model"),
        "pre_tokenizer": _text(metadata, "tokenizer.ggml.pre"),
        "tokens": len(tokens) if isinstance(tokens, GgufArray) else check.hparams.n_vocab if check.hparams else None,
        "merges": len(merges) if isinstance(merges, GgufArray) else None,
        "chat_template": "tokenizer.chat_template" in metadata,
    }


def _tensors(model: GgufFile) -> dict[str, JsonValue]:
    by_type: dict[str, list[int]] = {}
    for tensor in model.tensors.values():
        row = by_type.setdefault(tensor.type.name, [0, 0, 0])
        row[0] += 1
        row[1] += tensor.n_elements
        row[2] += tensor.n_bytes
    rows: list[JsonValue] = [
        {"type": name, "count": count, "elements": elements, "size_bytes": size}
        for name, (count, elements, size) in sorted(by_type.items(), key=lambda item: -item[1][2])
    ]
    return {
        "count": len(model.tensors),
        "elements": sum(tensor.n_elements for tensor in model.tensors.values()),
        "size_bytes": model.tensor_bytes,
        "by_type": rows,
    }


def _hash_problem(path: Path, sha256: str, document: dict[str, JsonValue]) -> list[GgufError]:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while block := file.read(_HASH_BLOCK):
                digest.update(block)
    except OSError as error:
        return [GgufError(UNREADABLE, f"{quoted(path, 200)} cannot be read: {error.strerror}", None, path)]
    found = digest.hexdigest()
    document["sha256"] = found
    document["sha256_matches"] = found == sha256.lower()
    if document["sha256_matches"]:
        return []
    return [GgufError(HASH, f"the sha256 of {quoted(path.name)} is {found}, not {quoted(sha256)}", None, path)]
