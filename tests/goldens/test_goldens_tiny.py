# SPDX-License-Identifier: Apache-2.0
"""The tiny models that come with the kit: greedy texts of 256 tokens are llama.cpp's, and the tokenizer's ids too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import pytest

from reference_engine.backends import make_backend
from reference_engine.model import KvOptions, Model
from reference_engine.tiny import DRAFTERS, NAMES, tiny_model
from reference_engine.tokenizer import load_tokenizer
from tests.goldens.golden_file import read_golden
from tests.goldens.real_models import differences

TARGETS = [name for name in NAMES if name not in DRAFTERS.values()]


@pytest.fixture(scope="module", params=TARGETS)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Model, dict[str, Any]]]:
    """A model with the settings of the peer, and its golden."""
    name = str(request.param)
    kv = KvOptions("f32", "f32")
    with Model.load(
        tiny_model(name), make_backend("float", threads=1), n_ctx=1024, kv=kv, gelu_half_table=True
    ) as model:
        yield model, read_golden(f"{name}.json")


def test_the_golden_is_of_this_file_and_its_prompts_of_this_tokenizer(pair: tuple[Model, dict[str, Any]]) -> None:
    model, golden = pair
    assert (
        hashlib.sha256(tiny_model(golden["model"].removesuffix(".gguf")).read_bytes()).hexdigest()
        == (golden["model_sha256"])
    )
    tokenizer = load_tokenizer(model.file)
    for entry in golden["greedy"]:
        assert tokenizer.encode(entry["text"]) == entry["prompt"]
        assert len(entry["ids"]) == 256


def test_greedy_texts_are_those_of_llama_cpp(pair: tuple[Model, dict[str, Any]]) -> None:
    model, golden = pair
    assert [str(it) for it in differences(model, golden["greedy"]) if not it.is_near_tie] == []


def test_another_token_in_a_greedy_text_is_seen(pair: tuple[Model, dict[str, Any]]) -> None:
    model, golden = pair
    entry = golden["greedy"][0]
    ids = [*entry["ids"][:40], entry["ids"][40] + 1, *entry["ids"][41:48]]
    (found,) = differences(model, [entry | {"ids": ids}])
    assert found.at == 40
    assert not found.is_near_tie
