# SPDX-License-Identifier: Apache-2.0
"""Small models in files, and a lock and mock of the test's own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reference_engine.backends import make_backend
from reference_engine.model import Model
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import Recipe
from tests.mock.mock_client import BUILD, ROOT

Load = Callable[..., Model]


@pytest.fixture
def model_file(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(Recipe("llama", kind=craft.GGML_Q8_0, layers=2).file())
    return path


@pytest.fixture
def load(model_file: Path) -> Iterator[Load]:
    """``load(backend="float", path=None, **what Model.load takes)``; closed at the end."""
    opened: list[Model] = []

    def open_it(backend: str = "float", path: Path | None = None, n_ctx: int = 64, threads: int = 1) -> Model:
        made = make_backend(backend, threads=threads)
        opened.append(Model.load(path or model_file, made, n_ctx=n_ctx, threads=threads))
        return opened[-1]

    yield open_it
    for model in opened:
        model.close()


@pytest.fixture
def mock_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The mock librknnrt, with the NPU lock out of other tests' way."""
    if "RKNPU_TEST_BUILD" not in os.environ:
        command = ["make", "-s", "-C", str(ROOT / "c_probes" / "mock"), f"BUILD={BUILD}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    monkeypatch.setenv("RKNPU_KIT_LOCK", str(tmp_path / "lock"))
    for name in list(os.environ):
        if name.startswith("RKNN_MOCK"):
            monkeypatch.delenv(name)
    return Path(BUILD) / "mock" / "librknnrt.so"
