# SPDX-License-Identifier: Apache-2.0
"""The committed record of the traps: sha256 of each file, prompt, right tokens, their margins, names of faults."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from conformance.goldens.manifest import ids_sha256
from conformance.traps.trap import Design

MAGIC, VERSION = "rknpu-kit-traps", 1
PATH = Path(__file__).with_name("manifest.json")
LEAST_NATS = 3.0
"""What each right token stands above the second at least, under each pipeline that the manifest names."""

Margins = Mapping[str, tuple[float, ...]]
"""Pipeline to the margin of each step."""


class TrapError(ValueError):
    """No such trap, or the manifest is damaged; the message says what to do."""


def read(path: Path = PATH) -> dict[str, Any]:
    """The manifest. TrapError where it is none, or of another version."""
    try:
        document: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise TrapError(f"{path} is no manifest of traps: {error}") from error
    if document.get("magic") != MAGIC or document.get("version") != VERSION:
        raise TrapError(f"{path} is no manifest of traps of version {VERSION}; take the one of this checkout")
    return document


def entry(design: Design, sha256: str, size: int, margins: Margins) -> dict[str, Any]:
    """What the manifest says of one trap. ``margins``: of the pipelines under which every token is right and clear."""
    least = [round(min(steps), 2) for steps in zip(*margins.values(), strict=True)]
    return {
        "name": design.name,
        "fault": design.fault,
        "architecture": design.blueprint.architecture,
        "file": f"trap-{design.name}.gguf",
        "bytes": size,
        "sha256": sha256,
        "prompt": design.text_of(design.prompt),
        "prompt_ids": list(design.prompt),
        "prompt_ids_sha256": ids_sha256(design.prompt),
        "text": design.text_of(design.tokens),
        "n_tokens": len(design.tokens),
        "token_ids": list(design.tokens),
        "token_ids_sha256": ids_sha256(design.tokens),
        "margins_nats": least,
        "pipelines": {name: round(min(steps), 2) for name, steps in margins.items()},
        "wrong": dict(design.wrong),
        "regenerate": "python -m conformance.traps --manifest",
    }


def write(entries: Iterable[dict[str, Any]], path: Path = PATH) -> None:
    """The same entries give the same bytes; lists of numbers stand on one line."""
    rows = ",\n".join(_object(row, 2) for row in entries)
    path.write_text(f'{{\n "magic": "{MAGIC}",\n "version": {VERSION},\n "traps": [\n{rows}\n ]\n}}\n', "utf-8")


def _object(row: Mapping[str, Any], indent: int) -> str:
    pad = " " * indent
    lines = (f"{pad} {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in row.items())
    return f"{pad}{{\n" + ",\n".join(lines) + f"\n{pad}}}"


def find(name: str, load: Callable[[], dict[str, Any]] = read) -> dict[str, Any]:
    """The entry of one trap. TrapError with the names that there are."""
    rows = {row["name"]: row for row in load()["traps"]}
    if name not in rows:
        raise TrapError(f"no trap {name!r}; there are {', '.join(rows)}")
    found: dict[str, Any] = rows[name]
    return found
