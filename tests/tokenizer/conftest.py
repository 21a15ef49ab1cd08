# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tokenizer tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from reference_engine.gguf_file import GgufFile, open_gguf
from reference_engine.tokenizer import Tokenizer, load_tokenizer
from tests.tokenizer.crafted_vocabulary import file_of

Load = Callable[[Mapping[str, bytes]], Tokenizer]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Writes a file of these keys and loads its tokenizer."""
    opened: list[GgufFile] = []

    def load_keys(keys: Mapping[str, bytes]) -> Tokenizer:
        path = tmp_path / f"vocabulary-{len(opened)}.gguf"
        path.write_bytes(file_of(keys))
        opened.append(open_gguf(path))
        return load_tokenizer(opened[-1])

    yield load_keys
    for model in opened:
        model.close()
