# SPDX-License-Identifier: Apache-2.0
"""Vocabularies that contradict themselves or cannot be used cost one sentence that names the key."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from typing import Any

import pytest

from reference_engine.gguf_errors import GgufError
from reference_engine.gguf_tensor import MissingPackage
from tests.gguf import crafted_gguf
from tests.tokenizer import crafted_vocabulary as craft
from tests.tokenizer.conftest import Load

LETTERS = craft.byte_letters()


def plain(tokens: Sequence[str | bytes], *, merges: list[str] | None = None, **more: bytes) -> dict[str, bytes]:
    more.setdefault("pre", craft.pre("gpt-2"))
    return craft.tokenizer_keys("gpt2", tokens, merges=craft.merges(merges or []), **more)


def without(keys: dict[str, bytes], name: str) -> dict[str, bytes]:
    del keys[f"tokenizer.ggml.{name}"]
    return keys


REFUSED: dict[str, tuple[dict[str, bytes], str]] = {
    "two tokens of one text": (
        plain([*LETTERS, "ab", "ab"]),
        "tokens 256 and 257 of 'tokenizer.ggml.tokens' are both 'ab'",
    ),
    "no tokens": (plain([]), "key 'tokenizer.ggml.tokens' has no items"),
    "a token as long as a book": (plain([*LETTERS, "x" * 1_000_000]), "token 256 .* has 1000000 characters"),
    "a merge of what is no token": (plain(LETTERS, merges=["a b"]), "item 0 .* needs 'ab', which is no token"),
    "a merge with an unknown half": (
        plain([*LETTERS, "ab"], merges=["a b", "ab zz"]),
        "item 1 .* needs 'zz', which is no token",
    ),
    "a merge that is no pair": (
        plain(LETTERS, merges=["ab"]),
        "item 0 of 'tokenizer.ggml.merges', 'ab', is no pair",
    ),
    "a merge with half a pair": (plain(LETTERS, merges=["a "]), "item 0 .* is no pair"),
    "no merges": (without(plain(LETTERS), "merges"), "key 'tokenizer.ggml.merges' is missing"),
    "no kind": (without(plain(LETTERS), "model"), "key 'tokenizer.ggml.model' is missing"),
    "a kind that is not supported": (
        craft.tokenizer_keys("t5", ["a"]),
        "key 'tokenizer.ggml.model' is 't5'; the kinds llama, gpt2, gemma4 are supported",
    ),
    "too few types": (plain(LETTERS, token_type=craft.types([1])), "key 'tokenizer.ggml.token_type' has 1 items"),
    "types that are floats": (
        plain(LETTERS, token_type=crafted_gguf.key_array("tokenizer.ggml.token_type", crafted_gguf.F32, [1.0] * 256)),
        "is an array of F32; an array of integers is needed",
    ),
    "too few scores": (
        craft.tokenizer_keys("llama", ["a", "b"], scores=craft.scores([0.0])),
        "key 'tokenizer.ggml.scores' has 1 items",
    ),
    "a score that is not a number": (
        craft.tokenizer_keys("llama", ["a", "b"], scores=craft.scores([0.0, math.nan])),
        "item 1 of 'tokenizer.ggml.scores' is not a number",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_vocabulary_is_refused_in_one_sentence(case: str, load: Load) -> None:
    keys, sentence = REFUSED[case]
    with pytest.raises(GgufError, match=sentence) as refusal:
        load(keys)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_an_empty_token_is_warned_of_and_no_text_becomes_it(load: Load) -> None:
    tokenizer = load(plain([*LETTERS, ""]))
    assert any("1 tokens have no text, the first is token 256" in warning for warning in tokenizer.warnings)
    assert 256 not in tokenizer.encode("a b")


def test_an_empty_special_token_splits_nothing(load: Load) -> None:
    keys = plain([*LETTERS, ""], token_type=craft.types([1] * 256 + [craft.USER_DEFINED]))
    assert 256 not in load(keys).encode("abc")


def test_a_token_that_is_no_utf8_decodes_to_its_own_bytes(load: Load) -> None:
    keys = craft.tokenizer_keys("llama", ["<unk>", "<s>", "</s>", b"\xff\xfe", "a"])
    tokenizer = load(keys)
    assert tokenizer.decode_bytes([3, 4], special=True) == b"\xff\xfea"
    assert load(plain([*LETTERS, b"\xff\xfe"])).decode_bytes([256]) == b"\xff\xfe"


def test_an_unknown_pre_tokenizer_is_warned_of_and_the_default_used(load: Load) -> None:
    tokens: list[str | bytes] = [*LETTERS, "12"]
    unknown = load(plain(tokens, merges=["1 2"], pre=craft.pre("brand-new")))
    assert "key 'tokenizer.ggml.pre' is 'brand-new', which is not known here" in unknown.warnings[0]
    missing = load(without(plain(tokens, merges=["1 2"]), "pre"))
    assert "key 'tokenizer.ggml.pre' is missing" in missing.warnings[0]
    default = load(plain(tokens, merges=["1 2"], pre=craft.pre("default")))
    assert default.warnings == ()
    assert unknown.encode("a 12!") == missing.encode("a 12!") == default.encode("a 12!")


def test_bytes_of_text_without_a_token_are_warned_of(load: Load) -> None:
    tokenizer = load(plain([letter for byte, letter in enumerate(LETTERS) if byte not in (0x41, 0xC3)]))
    assert tokenizer.warnings == ("2 bytes of UTF-8 have no token, the first is 0x41; text loses them",)
    assert tokenizer.encode("bA") == tokenizer.encode("b")


def test_control_characters_without_a_token_are_not_spoken_of(load: Load) -> None:
    tokenizer = load(plain(LETTERS[1:]))
    assert tokenizer.warnings == ()
    assert tokenizer.encode("a\x00") == tokenizer.encode("a")


def test_without_the_library_a_bpe_vocabulary_says_what_to_install(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def absent(name: str, *rest: Any) -> Any:
        if name == "tokenizers":
            raise ImportError("No module named 'tokenizers'")
        return real(name, *rest)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingPackage, match=r"needs the tokenizers package.*pip install '\.\[engine\]'"):
        load(plain(LETTERS))
    assert load(craft.spm()).encode("a"), "an SPM vocabulary needs nothing"
