# SPDX-License-Identifier: Apache-2.0
"""Every graph against float64; and the same bits in every batch, on any number of threads, with and without C."""

from __future__ import annotations

import numpy as np
import pytest

from reference_engine.kernels.library import load_library
from reference_engine.model import KvOptions, Model
from tests.engine.conftest import Load
from tests.engine.float64_forward import forward, nmse
from tests.gguf import crafted_gguf as craft
from tests.gguf.random_models import ARCHITECTURES, Recipe, label, recipes

TOKENS = [int(token) for token in np.random.Generator(np.random.PCG64(5)).integers(0, 256, 40)]
EXACT_KV = KvOptions("f32", "f32")
BACKENDS = ("float", "npu:w8a8-per-channel", "npu:w8a8-hadamard-segment", "npu:w4a4-hadamard", "npu:w16a16")
Q8 = {architecture: Recipe(architecture, kind=craft.GGML_Q8_0) for architecture in ARCHITECTURES}


@pytest.mark.parametrize("recipe", [*recipes(), Recipe("gemma2", frozenset({"loud"}))], ids=label)
def test_logits_are_those_of_float64(recipe: Recipe, load: Load) -> None:
    model = load(recipe, kv=EXACT_KV)
    found = model.forward(TOKENS, model.new_cache(), rows="all").logits
    expected = forward(recipe, TOKENS)
    assert np.std(expected) > 0.3  # else a wrong graph would be near it too
    assert nmse(expected, found) < 1e-10


@pytest.mark.parametrize("flash", [False, True])
def test_quantised_weights_count_as_the_numbers_they_stand_for(flash: bool, load: Load) -> None:
    recipe = Q8["gemma3"]
    model = load(recipe, kv=EXACT_KV, flash=flash)
    found = model.forward(TOKENS, model.new_cache(), rows="all").logits
    assert nmse(forward(recipe, TOKENS), found) < 1e-10


@pytest.mark.parametrize("recipe", recipes(), ids=label)
def test_an_option_of_a_model_changes_its_logits(recipe: Recipe) -> None:
    """The oracle itself: an option it overlooked would hide one that the engine overlooks."""
    if not recipe.options:
        return
    plain = forward(Recipe(recipe.architecture), TOKENS)
    assert nmse(plain, forward(recipe, TOKENS)) > 1e-6


def logits_in_batches(model: Model, sizes: list[int], tokens: list[int]) -> list[bytes]:
    """The bits of each token's logits, computed in batches of these sizes over and over."""
    rows: list[bytes] = []
    cache, batch = model.new_cache(), 0
    while len(rows) < len(tokens):
        part = tokens[len(rows) : len(rows) + sizes[batch % len(sizes)]]
        rows += [row.tobytes() for row in model.forward(part, cache, rows="all").logits]
        batch += 1
    return rows


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_token_alone_and_in_any_batch_has_the_same_bits(architecture: str, backend: str, load: Load) -> None:
    tokens = TOKENS[:20]
    model = load(Q8[architecture], backend, threads=2)
    alone = logits_in_batches(model, [1], tokens)
    assert len(set(alone)) > len(alone) // 2
    for sizes in ([2], [3], [7], [20], [5, 1, 1, 9]):
        assert logits_in_batches(model, sizes, tokens) == alone


@pytest.mark.parametrize("kv", [KvOptions("q8_0", "q8_0"), KvOptions("q4_0", "f16", rotate=False)], ids=str)
@pytest.mark.parametrize("flash", [False, True])
def test_batches_leave_no_trace_in_any_kind_of_cache(kv: KvOptions, flash: bool, load: Load) -> None:
    model = load(Q8["gemma3"], kv=kv, flash=flash)
    alone = logits_in_batches(model, [1], TOKENS)
    for sizes in ([4], [40], [9, 2]):
        assert logits_in_batches(model, sizes, TOKENS) == alone


@pytest.mark.parametrize("backend", BACKENDS)
def test_threads_leave_no_trace(backend: str, load: Load) -> None:
    bits = {
        threads: logits_in_batches(load(Q8["qwen3"], backend, threads=threads), [9, 1], TOKENS[:12])
        for threads in (1, 2, 3)
    }
    assert bits[1] == bits[2] == bits[3]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_numpy_alone_gives_the_bits_of_the_kernels(architecture: str, backend: str, load: Load) -> None:
    library = load_library()
    if library is None:
        pytest.skip("the kernels are not built")
    recipe, tokens = Q8[architecture], TOKENS[:9]
    with_kernels = logits_in_batches(load(recipe, backend, threads=2, kernels=library), [8, 1], tokens)
    assert logits_in_batches(load(recipe, backend, kernels=None), [8, 1], tokens) == with_kernels
