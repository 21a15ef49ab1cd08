# SPDX-License-Identifier: Apache-2.0
"""Text to train on: sources of Python's standard library, by name: the same interpreter gives the same text."""

from __future__ import annotations

import hashlib
import sysconfig
from dataclasses import dataclass
from pathlib import Path

HELD_OUT_OF_16 = 1
"""One file in sixteen, by the hash of its name, is kept for prompts and is never trained on."""

FOLDERS = ("", "asyncio", "collections", "concurrent/futures", "email", "html", "http", "importlib", "json", "logging")


@dataclass(frozen=True)
class Corpus:
    """``train`` and ``held_out``: the files' texts, in order of their names."""

    train: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def sha256(self) -> str:
        digest = hashlib.sha256()
        for text in (*self.train, *self.held_out):
            digest.update(text.encode() + b"\0")
        return digest.hexdigest()


def standard_library(root: Path | None = None) -> Corpus:
    """The sources that this interpreter brings (Python Software Foundation License)."""
    root = Path(sysconfig.get_path("stdlib")) if root is None else root
    files = sorted(path for folder in FOLDERS for path in (root / folder).glob("*.py"))
    train: list[str] = []
    held_out: list[str] = []
    for path in files:
        text = path.read_text(encoding="utf-8", errors="strict")
        name = str(path.relative_to(root))
        out = hashlib.sha256(name.encode()).digest()[0] % 16 < HELD_OUT_OF_16
        (held_out if out else train).append(text)
    return Corpus(tuple(train), tuple(held_out))
