# SPDX-License-Identifier: Apache-2.0
"""What is encoded comes back byte for byte, whole and as a stream."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.tokenizer import Tokenizer, TokenizerError
from tests.tokenizer.conftest import Load
from tests.tokenizer.crafted_vocabulary import ALPHABET, PRE_NAMES, VOCABULARIES, byte_level, gemma4, spm

ANY_TEXT = st.one_of(
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60), st.text(alphabet=ALPHABET, max_size=60)
)
NO_ESCAPED_SPACE = ANY_TEXT.filter(lambda text: "▁" not in text)
# a fixture that hypothesis does not rebuild is what is wanted: the tokenizer does not change
SHARED = settings(max_examples=150, deadline=None)


@pytest.fixture(params=PRE_NAMES)
def byte_tokenizer(request: pytest.FixtureRequest, load: Load) -> Tokenizer:
    return load(byte_level(request.param))


@SHARED
@given(text=ANY_TEXT)
def test_a_byte_level_vocabulary_gives_back_any_text(byte_tokenizer: Tokenizer, text: str) -> None:
    ids = byte_tokenizer.encode(text, add_special=False)
    assert byte_tokenizer.decode_bytes(ids) == text.encode()
    with_special = byte_tokenizer.encode(text, parse_special=True)
    hidden = byte_tokenizer.add_bos
    assert byte_tokenizer.decode_bytes(with_special[hidden:], special=True) == text.encode()


@SHARED
@given(text=NO_ESCAPED_SPACE)
def test_byte_tokens_give_back_any_text_of_an_spm_vocabulary(load: Load, text: str) -> None:
    for keys in (spm(), VOCABULARIES["spm without a space before"]()):
        tokenizer = load(keys)
        if tokenizer.add_space_prefix and "<tool>" in text:
            continue  # a space goes before each stretch of text, and only the first is taken away again
        assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode()


@SHARED
@given(text=NO_ESCAPED_SPACE)
def test_byte_tokens_give_back_any_text_of_a_gemma4_vocabulary(load: Load, text: str) -> None:
    tokenizer = load(gemma4())
    assert tokenizer.decode_bytes(tokenizer.encode(text)) == text.encode()


@SHARED
@given(text=ANY_TEXT)
def test_a_stream_shows_the_same_text_token_by_token(byte_tokenizer: Tokenizer, text: str) -> None:
    stream = byte_tokenizer.stream()
    shown = [stream.feed(token) for token in byte_tokenizer.encode(text)]
    assert "".join(shown) + stream.finish() == text
    assert "\ufffd" in text or all("\ufffd" not in part for part in shown)


def test_a_character_is_shown_once_its_last_byte_is_there(load: Load) -> None:
    tokenizer = load(spm())
    stream = tokenizer.stream()
    assert [stream.feed(3 + byte) for byte in "🚀".encode()] == ["", "", "", "🚀"]


def test_an_unfinished_character_ends_as_a_replacement_and_the_stream_starts_anew(load: Load) -> None:
    stream = load(spm()).stream()
    assert stream.feed(3 + 0xF0) == ""
    assert stream.finish() == "\ufffd"
    assert stream.feed(3 + ord("a")) == "a"


def test_bytes_that_are_no_text_are_decoded_as_they_are(load: Load) -> None:
    tokenizer = load(spm())
    assert tokenizer.decode_bytes([3 + 0xFF, 3 + 0x00, 3 + 0xC3]) == b"\xff\x00\xc3"
    assert tokenizer.decode([3 + 0xFF]) == "\ufffd"


def test_control_tokens_are_hidden_unless_asked_for(load: Load) -> None:
    tokenizer = load(byte_level("qwen2"))
    ids = tokenizer.encode("<|im_start|>a<tool>", parse_special=True)
    assert tokenizer.decode(ids) == "a<tool>"
    assert tokenizer.decode(ids, special=True) == "<|im_start|>a<tool>"
    assert tokenizer.piece(ids[0], special=False) == b""


@pytest.mark.parametrize("token", [-1, 10**6])
def test_an_id_outside_the_vocabulary_is_refused(load: Load, token: int) -> None:
    with pytest.raises(TokenizerError, match=f"token {token} is outside the vocabulary"):
        load(spm()).piece(token)


def test_a_lone_surrogate_is_refused_with_its_place(load: Load) -> None:
    with pytest.raises(TokenizerError, match="character 2 of the text is a lone surrogate"):
        load(spm()).encode("ab\udc80")
