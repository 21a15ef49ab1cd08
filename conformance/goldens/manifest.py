# SPDX-License-Identifier: Apache-2.0
"""The manifest of goldens: greedy token ids by model and pipeline, as hashes, with the margin of every step.

A hash of tokens decides something only where the bits are the same on every machine (this kit's engine), or where every
margin is wide (trap models): a quantised run of another engine changes tokens with its version and batch shape.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from reference_engine.speculation.verify import tokens_sha256

MAGIC, VERSION = "rknpu-kit-goldens", 1
DIGITS = 4
"""Of a margin, behind the point."""


class ManifestError(ValueError):
    """The file is no manifest of this version; the message names the file and the place."""


@dataclass(frozen=True)
class Entry:
    """One greedy run.

    ``prompt`` is the text, or the name of a text that the kit has; its ids are those whose hash is beside it.
    ``margins_nats``: how far the chosen token stood above the second, one for each of ``n_tokens``. ``regenerate``: the
    command that makes the entry anew.
    """

    model: str
    model_sha256: str
    pipeline: str
    prompt: str
    prompt_ids_sha256: str
    n_tokens: int
    token_ids_sha256: str
    margins_nats: tuple[float, ...]
    regenerate: str

    @property
    def key(self) -> tuple[str, str, str]:
        """What an entry is found by: model, pipeline, prompt."""
        return self.model, self.pipeline, self.prompt


def ids_sha256(ids: Sequence[int]) -> str:
    """sha256 over token ids as little-endian int32, the hash that every page of this kit prints."""
    return tokens_sha256(ids)


def file_sha256(path: Path) -> str:
    """sha256 of a model's file."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write(path: Path, entries: Iterable[Entry]) -> None:
    """The same entries give the same bytes. Margins are rounded to ``DIGITS`` places."""
    rows = sorted(entries, key=lambda entry: entry.key)
    body = ",\n".join(_as_text(entry) for entry in rows)
    head = f'{{\n "magic": {json.dumps(MAGIC)},\n "version": {VERSION},\n "entries": ['
    path.write_text(f"{head}\n{body}\n ]\n}}\n" if rows else f"{head}]\n}}\n", "utf-8")


def read(path: Path) -> tuple[Entry, ...]:
    """The entries of a manifest. ManifestError for anything else."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(f"{path} cannot be read as a manifest of goldens: {error}") from error
    if not isinstance(document, dict) or document.get("magic") != MAGIC:
        raise ManifestError(f"{path} is no manifest of goldens: its magic is not {MAGIC!r}")
    if document.get("version") != VERSION:
        raise ManifestError(f"{path} has version {document.get('version')!r}; this kit reads version {VERSION}")
    entries = document.get("entries")
    if not isinstance(entries, list):
        raise ManifestError(f"{path}: entries is no list")
    found = tuple(_entry(path, number, row) for number, row in enumerate(entries))
    keys = [entry.key for entry in found]
    for number, key in enumerate(keys):
        if key in keys[:number]:
            raise ManifestError(f"{path}, entry {number}: {' / '.join(key)} is there twice")
    return found


def by_key(entries: Iterable[Entry]) -> Mapping[tuple[str, str, str], Entry]:
    """Entries by model, pipeline and prompt."""
    return {entry.key: entry for entry in entries}


def _as_text(entry: Entry) -> str:
    """One field a line, so that a change is readable in a diff; margins on one."""
    lines = []
    for field in fields(Entry):
        value: Any = getattr(entry, field.name)
        if field.name == "margins_nats":
            value = [round(float(margin), DIGITS) for margin in value]
        lines.append(f"   {json.dumps(field.name)}: {json.dumps(value)}")
    return "  {\n" + ",\n".join(lines) + "\n  }"


def _entry(path: Path, number: int, row: Any) -> Entry:
    where = f"{path}, entry {number}"
    if not isinstance(row, dict) or set(row) != {field.name for field in fields(Entry)}:
        raise ManifestError(f"{where} has not the fields {', '.join(field.name for field in fields(Entry))}")
    for field in fields(Entry):
        if field.name not in ("n_tokens", "margins_nats") and not isinstance(row[field.name], str):
            raise ManifestError(f"{where}: {field.name} is no text")
    for name in ("model_sha256", "prompt_ids_sha256", "token_ids_sha256"):
        if len(row[name]) != 64 or set(row[name]) - set("0123456789abcdef"):
            raise ManifestError(f"{where}: {name} is no sha256 in lower-case hexadecimal")
    n_tokens, margins = row["n_tokens"], row["margins_nats"]
    if not isinstance(n_tokens, int) or isinstance(n_tokens, bool) or n_tokens < 0:
        raise ManifestError(f"{where}: n_tokens is no count")
    if not isinstance(margins, list) or any(isinstance(m, bool) or not isinstance(m, (int, float)) for m in margins):
        raise ManifestError(f"{where}: margins_nats is no list of numbers")
    if len(margins) != n_tokens:
        raise ManifestError(f"{where}: {len(margins)} margins for {n_tokens} tokens")
    return Entry(**{**row, "margins_nats": tuple(float(margin) for margin in margins)})
