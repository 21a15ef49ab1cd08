# SPDX-License-Identifier: Apache-2.0
"""Ids equal those that llama.cpp gave for the same files, kept in crafted_vectors.json with how they were made."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.tokenizer.conftest import Load
from tests.tokenizer.crafted_vocabulary import PRE_NAMES, TEXTS, VOCABULARIES, file_of

GOLDEN = Path(__file__).with_name("crafted_vectors.json")


@pytest.fixture(scope="module")
def golden() -> dict[str, Any]:
    vectors: dict[str, Any] = json.loads(GOLDEN.read_text())
    assert vectors["magic"] == "rknpu-kit token vectors"
    assert vectors["version"] == 1
    return vectors["vocabularies"]  # type: ignore[no-any-return]


def test_each_crafted_vocabulary_has_vectors(golden: dict[str, Any]) -> None:
    assert golden.keys() == VOCABULARIES.keys()


@pytest.mark.parametrize("name", VOCABULARIES)
def test_the_vectors_are_of_the_file_written_today(name: str, golden: dict[str, Any]) -> None:
    assert hashlib.sha256(file_of(VOCABULARIES[name]())).hexdigest() == golden[name]["sha256"]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_ids_equal_those_of_llama_cpp(name: str, golden: dict[str, Any], load: Load) -> None:
    tokenizer = load(VOCABULARIES[name]())
    assert [tokenizer.encode(text, add_special=False) for text in TEXTS] == golden[name]["plain"]
    assert [tokenizer.encode(text, parse_special=True) for text in TEXTS] == golden[name]["special"]


@pytest.mark.parametrize("name", VOCABULARIES)
def test_tokens_that_end_a_generation_are_those_of_llama_cpp(name: str, golden: dict[str, Any], load: Load) -> None:
    assert sorted(load(VOCABULARIES[name]()).eog) == golden[name]["eog"]


def test_the_vectors_tell_the_pre_tokenizers_apart(golden: dict[str, Any]) -> None:
    pairs = {(one, other) for one in PRE_NAMES for other in PRE_NAMES if one < other}
    same = {pair for pair in pairs if golden[pair[0]]["plain"] == golden[pair[1]]["plain"]}
    assert same == {("glm4", "llama-bpe")}, "these two differ in BOS alone"
    assert golden["glm4"]["special"] != golden["llama-bpe"]["special"]
