# SPDX-License-Identifier: Apache-2.0
"""Every graph against float64; and the same bits in every batch, on any number of threads, with and without C."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from reference_engine.backends import make_backend
from reference_engine.model import KvOptions, Model
from tests.engine.float64_forward import forward, nmse
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import ARCHITECTURES, Recipe, label, recipes

TOKENS = [int(token) for token in np.random.Generator(np.random.PCG64(5)).integers(0, 256, 40)]


@pytest.mark.parametrize("recipe", recipes(), ids=label)
def test_logits_are_those_of_float64(recipe: Recipe, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(recipe.file())
    backend = make_backend("float", threads=1)
    with Model.load(path, backend, kv=KvOptions("f32", "f32")) as model:
        found = model.forward(TOKENS, model.new_cache(), rows="all").logits
    expected = forward(recipe, TOKENS)
    assert np.std(expected) > 0.3  # a test that could fail
    assert nmse(expected, found) < 1e-10


def logits_in_batches(model: Model, sizes: list[int]) -> list[bytes]:
    """The bits of each token's logits, computed in batches of these sizes, again and again."""
    rows: list[bytes] = []
    cache, at = model.new_cache(), 0
    while at < len(TOKENS):
        size = sizes[len(rows) % len(sizes)] if len(sizes) > 1 else sizes[0]
        part = TOKENS[at : at + size]
        rows += [row.tobytes() for row in model.forward(part, cache, rows="all").logits]
        at += len(part)
    return rows


BACKENDS = ("float", "npu:w8a8-per-channel", "npu:w8a8-segment", "npu:w4a4-hadamard", "npu:w16a16")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_token_alone_and_in_any_batch_has_the_same_bits(architecture: str, backend: str, tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(Recipe(architecture, kind=craft.GGML_Q8_0).file())
    with Model.load(path, make_backend(backend, threads=2), threads=2) as model:
        alone = logits_in_batches(model, [1])
        assert len(set(alone)) > len(alone) // 2
        for sizes in ([2], [3], [7], [len(TOKENS)], [5, 1, 1, 9]):
            assert logits_in_batches(model, sizes) == alone
