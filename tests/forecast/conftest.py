# SPDX-License-Identifier: Apache-2.0
"""A small dense model as a header without data, and one open on the made-up board."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.forecast_cases.header import Dimensions, write_header
from reference_engine.gguf_file import GgufFile, open_gguf

SMALL = Dimensions(layers=4, embd=1024, ff=4096, heads=16, kv_heads=4, head_dim=64, vocab=32000, tied=False)


@pytest.fixture(scope="session")
def small_header(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_header(tmp_path_factory.mktemp("header") / "small.gguf", "small", SMALL)


@pytest.fixture
def small(small_header: Path) -> Iterator[GgufFile]:
    with open_gguf(small_header, header_only=True) as model:
        yield model
