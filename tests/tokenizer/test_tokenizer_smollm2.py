# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of a real model: ids, pieces and end tokens as llama.cpp has them, and its own chat template."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_engine.gguf_file import open_gguf
from reference_engine.model_cache import MODELS
from reference_engine.tokenizer import Tokenizer, load_tokenizer
from tests.real_model import need_model

pytestmark = pytest.mark.model

VECTORS: dict[str, Any] = json.loads(Path(__file__).with_name("smollm2_vectors.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def smollm2() -> Iterator[Tokenizer]:
    path = need_model()
    assert MODELS["smollm2"].sha256 == VECTORS["model_sha256"]
    with open_gguf(path) as model:
        yield load_tokenizer(model)


def test_ids_of_the_real_vocabulary_equal_those_of_llama_cpp(smollm2: Tokenizer) -> None:
    assert [smollm2.encode(text) for text in VECTORS["texts"]] == VECTORS["plain"]
    assert [smollm2.encode(text, parse_special=True) for text in VECTORS["texts"]] == VECTORS["special"]


def test_every_text_comes_back(smollm2: Tokenizer) -> None:
    for text in VECTORS["texts"]:
        assert smollm2.decode_bytes(smollm2.encode(text)) == text.encode()


def test_every_piece_equals_that_of_llama_cpp(smollm2: Tokenizer) -> None:
    digest = hashlib.sha256()
    for token in range(len(smollm2)):
        digest.update(smollm2.piece(token) + b"\n")
    assert digest.hexdigest() == VECTORS["pieces_sha256"]
    assert sorted(smollm2.eog) == VECTORS["eog"]


def test_its_chat_template_frames_each_turn(smollm2: Tokenizer) -> None:
    pytest.importorskip("jinja2")
    talk = [{"role": "user", "content": "What is an NPU?"}]
    text = smollm2.apply_chat(talk)
    assert text.endswith("<|im_start|>user\nWhat is an NPU?<|im_end|>\n<|im_start|>assistant\n")
    ids = smollm2.encode_chat(talk)
    assert smollm2.decode(ids, special=True) == text
    assert ids.count(2) == 2, "the end of the system's turn and of the user's"


def test_the_tokenizer_is_there_in_a_moment(smollm2: Tokenizer) -> None:
    path = need_model()
    began = time.monotonic()
    with open_gguf(path, header_only=True) as model:
        assert len(load_tokenizer(model)) == len(smollm2)
    assert time.monotonic() - began < 10
