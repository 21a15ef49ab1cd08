# SPDX-License-Identifier: Apache-2.0
"""Vocabularies made at random: loaded or refused in one sentence, and what is loaded gives ids of its own tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_file import open_gguf
from reference_engine.tokenizer import TokenizerError, load_tokenizer
from tests.gguf import crafted_gguf
from tests.tokenizer import crafted_vocabulary as craft

LETTERS = st.sampled_from(
    ["a", "b", "ab", "▁", "▁a", " ", "\n", "Ġ", "Ċ", "é", "\x00", "<s>", "<0x61>", "<0xZZ>", "<|end|>"]
)
TEXT = st.one_of(LETTERS, st.text(max_size=4), st.binary(max_size=3))
NUMBERS = st.sampled_from([0, 1, 2, 5, 11, 2**31, 2**32 - 1])


@st.composite
def vocabularies(draw: st.DrawFn) -> dict[str, bytes]:
    tokens = draw(st.lists(TEXT, max_size=12, unique=draw(st.booleans())))
    plain = [token.decode("utf-8", "replace") if isinstance(token, bytes) else token for token in tokens]
    halves = st.sampled_from([*plain, "zz"]) if plain else st.just("zz")
    merges = draw(st.lists(st.tuples(halves, halves).map(" ".join), max_size=8))
    more = {"merges": craft.merges(merges), "pre": craft.pre(draw(st.sampled_from(["gpt-2", "llama-bpe", "x", ""])))}
    more["token_type"] = craft.types(draw(st.lists(st.integers(-1, 9), min_size=len(tokens), max_size=len(tokens))))
    more["scores"] = craft.scores(
        draw(st.lists(st.floats(width=32, allow_nan=draw(st.booleans())), min_size=len(tokens), max_size=len(tokens)))
    )
    for name in ("bos_token_id", "eos_token_id", "unknown_token_id", "eot_token_id"):
        if draw(st.booleans()):
            more[name] = craft.token_id(name, draw(NUMBERS))
    if draw(st.booleans()):
        more["add_bos_token"] = craft.flag("add_bos_token", draw(st.booleans()))
    if draw(st.integers(0, 9)) == 0:
        more["scores"] = crafted_gguf.key_text("tokenizer.ggml.scores", "none")
    return craft.tokenizer_keys(draw(st.sampled_from(["llama", "gpt2", "gemma4"])), tokens, **more)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("vocabularies")


@settings(max_examples=600, deadline=None)
@given(keys=vocabularies(), text=st.one_of(st.text(max_size=12), st.lists(LETTERS, max_size=6).map("".join)))
def test_any_vocabulary_is_loaded_or_refused(folder: Path, keys: dict[str, bytes], text: str) -> None:
    path = folder / "vocabulary.gguf"
    path.write_bytes(craft.file_of(keys))
    with open_gguf(path) as model:
        try:
            tokenizer = load_tokenizer(model)
        except GgufError as refusal:
            assert "\n" not in str(refusal)
            return
        assert all("\n" not in warning for warning in tokenizer.warnings)
        assert all(0 <= token < len(tokenizer) for token in tokenizer.eog)
        try:
            ids = tokenizer.encode(text, parse_special=True)
        except TokenizerError as refusal:
            assert "\n" not in str(refusal)
            return
        assert all(0 <= token < len(tokenizer) for token in ids)
        stream = tokenizer.stream(special=True)
        shown = "".join(map(stream.feed, ids)) + stream.finish()
        assert b"".join(map(tokenizer.piece, ids)).decode("utf-8", "replace") == shown
