# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the engine tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_engine.backends import make_backend
from reference_engine.model import Model
from tests.gguf.random_models import Recipe

Load = Callable[..., Model]


@pytest.fixture
def model_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes the file of a recipe and returns its path."""

    def write(recipe: Recipe, name: str = "model.gguf") -> Path:
        path = tmp_path / name
        path.write_bytes(recipe.file())
        return path

    return write


@pytest.fixture
def load(model_file: Callable[..., Path]) -> Iterator[Load]:
    """Loads a recipe: ``load(recipe, backend="float", threads=1, **what Model.load takes)``; closed at the end."""
    opened: list[Model] = []

    def open_it(recipe: Recipe, backend: str = "float", threads: int = 1, **options: Any) -> Model:
        path = model_file(recipe, f"{len(opened)}.gguf")
        kernels = options.pop("kernels", "auto")
        model = Model.load(path, make_backend(backend, threads=threads, kernels=kernels), threads=threads, **options)
        opened.append(model)
        return model

    yield open_it
    for model in opened:
        model.close()
