# SPDX-License-Identifier: Apache-2.0
"""Vocabularies of a target and its draft: the same, near enough for llama.cpp, or refused with the first difference."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from reference_engine.gguf_file import open_gguf
from reference_engine.speculation.vocabulary import Comparison, compare, identity
from tests.gguf import crafted_gguf as craft

TOKENS = [f"t{i}" for i in range(200)]
MERGES = ["a b", "ab c"]


def file_of(
    path: Path, tokens: Sequence[str] = TOKENS, merges: Sequence[str] | None = MERGES, **more: int | str | bool
) -> Path:
    keys = [
        craft.key_text("general.architecture", "llama"),
        craft.key_text("tokenizer.ggml.model", str(more.pop("model", "gpt2"))),
        craft.key_text("tokenizer.ggml.pre", str(more.pop("pre", "gpt-2"))),
        craft.key_array("tokenizer.ggml.tokens", craft.STRING, list(tokens)),
    ]
    if merges is not None:
        keys.append(craft.key_array("tokenizer.ggml.merges", craft.STRING, list(merges)))
    for name, value in more.items():
        key = f"tokenizer.ggml.{name}"
        flag = isinstance(value, bool)
        keys.append(craft.key(key, craft.BOOL, bytes([int(value)])) if flag else craft.key_u32(key, int(value)))
    path.write_bytes(craft.gguf(keys))
    return path


@pytest.fixture
def pair(tmp_path: Path) -> PairOf:
    return PairOf(tmp_path)


class PairOf:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, target: dict[str, object] | None = None, draft: dict[str, object] | None = None) -> Comparison:
        files = [
            file_of(self.folder / name, **options)  # type: ignore[arg-type]
            for name, options in (("t.gguf", target or {}), ("d.gguf", draft or {}))
        ]
        with open_gguf(files[0]) as mine, open_gguf(files[1]) as other:
            return compare(mine, other)


def changed(at: int, text: str = "other") -> list[str]:
    return [*TOKENS[:at], text, *TOKENS[at + 1 :]]


def test_the_same_vocabulary_is_identical(pair: PairOf) -> None:
    result = pair()
    assert result.identical
    assert result.compatible
    assert result.difference is None
    assert result.sentence().startswith("vocabulary of target and draft: identical (sha256 of tokens ")


def test_hashes_are_sha256_over_texts_ended_by_a_zero_byte(tmp_path: Path) -> None:
    with open_gguf(file_of(tmp_path / "t.gguf")) as model:
        found = identity(model)
    assert found.tokens_sha256 == hashlib.sha256(b"".join(token.encode() + b"\0" for token in TOKENS)).hexdigest()
    assert found.merges_sha256 == hashlib.sha256(b"a b\0ab c\0").hexdigest()
    assert (found.model, found.n_tokens) == ("gpt2", 200)


@pytest.mark.parametrize(
    ("target", "draft", "difference"),
    [
        ({}, {"model": "llama"}, "tokenizer is 'gpt2', the draft's 'llama'"),
        ({}, {"tokens": changed(5)}, "token 5 is 't5' in the target and 'other' in the draft"),
        ({}, {"tokens": changed(199)}, "token 199"),
        ({}, {"tokens": TOKENS[:71]}, "200 tokens and the draft 71"),
        ({"add_bos_token": True, "bos_token_id": 1}, {"add_bos_token": True, "bos_token_id": 2}, "bos token is 1"),
        ({"add_bos_token": True, "bos_token_id": 1}, {"bos_token_id": 1}, "one adds a bos token"),
        ({"add_eos_token": True, "eos_token_id": 1}, {"add_eos_token": True, "eos_token_id": 3}, "eos token is 1"),
        ({"model": "llama"}, {"model": "llama", "add_bos_token": False}, "one adds a bos token"),
        ({"model": "llama", "bos_token_id": 3}, {"model": "llama"}, "bos token is 3 in the target and 1 in the draft"),
        ({"pre": "llama-bpe"}, {}, "one adds a bos token and the other does not (target True, draft False)"),
        ({"model": "t5"}, {"model": "t5", "add_eos_token": False}, "one adds an eos token"),
        ({"tokens": []}, {}, "the target has no vocabulary"),
    ],
)
def test_pairs_that_llama_cpp_refuses(
    pair: PairOf, target: dict[str, object], draft: dict[str, object], difference: str
) -> None:
    result = pair(target, draft)
    assert not result.compatible
    assert difference in (result.difference or "")


@pytest.mark.parametrize(
    ("draft", "difference"),
    [
        ({"tokens": changed(4)}, "token 4 is 't4'"),
        ({"tokens": TOKENS[:72]}, "200 tokens, the draft 72"),
        ({"merges": ["a b", "ab d"]}, "merge 1 is 'ab c' in the target and 'ab d' in the draft"),
        ({"merges": ["a b"]}, "merge 1 is 'ab c' in the target and None in the draft"),
        ({"merges": None}, "merge 0"),
    ],
)
def test_pairs_that_llama_cpp_takes_though_they_differ(pair: PairOf, draft: dict[str, object], difference: str) -> None:
    result = pair({}, draft)
    assert result.compatible
    assert not result.identical
    assert difference in (result.difference or "")
    assert difference in result.sentence()
    merges = "none" if draft.get("merges", MERGES) is None else (result.draft.merges_sha256 or "?")[:12]
    assert result.sentence().endswith(f", of merges {merges})")


@pytest.mark.parametrize(
    ("target", "draft"),
    [
        ({"model": "llama", "bos_token_id": 1}, {"model": "llama"}),
        ({"pre": "llama-bpe", "add_bos_token": False}, {}),
        ({"model": "gemma4", "add_bos_token": False}, {"model": "gemma4"}),
        ({"model": "gemma4", "bos_token_id": 11}, {"add_bos_token": True}),
    ],
)
def test_what_a_file_does_not_say_is_what_llama_cpp_takes(
    pair: PairOf, target: dict[str, object], draft: dict[str, object]
) -> None:
    assert pair(target, draft).compatible
