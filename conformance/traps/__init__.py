# SPDX-License-Identifier: Apache-2.0
"""Trap models: small crafted GGUF files on which one fault changes the greedy tokens, and says so in the text.

Whoever runs such a file greedily, with any engine that reads GGUF, gets the expected tokens or a proof of what is
wrong: margins are wide by construction, so that no rounding mode, batch shape or version moves a token.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from conformance.traps.catalogue import DESIGNS
from conformance.traps.records import TrapError, find, read
from conformance.traps.trap import Trap, diagnose, first_difference, proven_fault

__all__ = [
    "Trap",
    "TrapError",
    "diagnose",
    "expected",
    "first_difference",
    "manifest",
    "proven_fault",
    "trap_names",
    "write_trap",
]


def trap_names() -> tuple[str, ...]:
    """All traps, the one whose finding explains others first."""
    return tuple(DESIGNS)


def manifest() -> dict[str, Any]:
    """The committed record (conformance/traps/manifest.json)."""
    return read()


def write_trap(name: str, folder: str | Path) -> Trap:
    """The trap with its file in ``folder``, written where it is not there as it has to be.

    TrapError for a name that there is not, and where this checkout writes other bytes than its manifest says.
    """
    row = find(name)
    path = Path(folder) / row["file"]
    if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != row["sha256"]:
        raw = DESIGNS[name]().blueprint.encode()
        if hashlib.sha256(raw).hexdigest() != row["sha256"]:
            raise TrapError(f"trap {name}: the file is not the one of the manifest; run {row['regenerate']}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(raw)
    return _trap(row, path)


def expected(name: str) -> Trap:
    """A trap to judge answers with, its file not written. TrapError for a name that there is not."""
    row = find(name)
    return _trap(row, Path(row["file"]))


def _trap(row: dict[str, Any], path: Path) -> Trap:
    return Trap(
        name=row["name"],
        path=path,
        fault=row["fault"],
        prompt=tuple(row["prompt_ids"]),
        prompt_text=row["prompt"],
        tokens=tuple(row["token_ids"]),
        text=row["text"],
        margins_nats=tuple(row["margins_nats"]),
        wrong=row["wrong"],
    )
