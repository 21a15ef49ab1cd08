# SPDX-License-Identifier: Apache-2.0
"""A small random model on a disk, and sequences on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reference_engine.backends import make_backend
from reference_engine.model import Model
from tests.gguf.random_models import Recipe


@pytest.fixture(scope="session")
def model_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Model]]:
    """A random model by architecture, loaded once."""
    folder: Path = tmp_path_factory.mktemp("models")
    loaded: dict[str, Model] = {}

    def load(architecture: str) -> Model:
        if architecture not in loaded:
            path = folder / f"{architecture}.gguf"
            path.write_bytes(Recipe(architecture).file())
            loaded[architecture] = Model.load(path, make_backend("float", threads=1))
        return loaded[architecture]

    yield load
    for model in loaded.values():
        model.close()
