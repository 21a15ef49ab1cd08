# SPDX-License-Identifier: Apache-2.0
"""Special tokens: which are split out of a text, which end a generation, what is put around a text."""

from __future__ import annotations

import pytest

from reference_engine.tokenizer import TokenizerError
from reference_engine.tokenizer.partition import partition
from tests.tokenizer import crafted_vocabulary as craft
from tests.tokenizer.conftest import Load


def vocabulary(*specials: tuple[str, int], **more: bytes) -> dict[str, bytes]:
    """A byte-level vocabulary of single bytes whose last tokens are these."""
    letters = craft.byte_letters()
    texts = [text for text, _ in specials]
    kinds = [craft.NORMAL] * 256 + [kind for _, kind in specials]
    return craft.tokenizer_keys(
        "gpt2",
        [*letters, *texts],
        pre=craft.pre("gpt-2"),
        token_type=craft.types(kinds),
        merges=craft.merges([]),
        **more,
    )


def test_the_longest_special_token_is_taken_first() -> None:
    special = [("<ab>", 3), ("<a", 1), ("b>", 2)]
    assert partition("x<ab>y<a b>", special) == ["x", 3, "y", 1, " ", 2]


def test_special_tokens_side_by_side_leave_no_empty_text() -> None:
    assert partition("<a><a>x<a>", [("<a>", 7)]) == [7, 7, "x", 7]
    assert partition("", [("<a>", 7)]) == []


def test_longest_counts_in_bytes_and_whatever_the_order_of_ids(load: Load) -> None:
    tokenizer = load(vocabulary(("<a", craft.USER_DEFINED), ("<a>", craft.USER_DEFINED), ("éé", craft.USER_DEFINED)))
    assert tokenizer.encode("<a>ééé", add_special=False)[:2] == [257, 258]


def test_what_a_user_types_is_no_control_token(load: Load) -> None:
    tokenizer = load(vocabulary(("<|im_end|>", craft.CONTROL), ("<tool>", craft.USER_DEFINED)))
    typed = tokenizer.encode("<|im_end|><tool>", add_special=False)
    assert 256 not in typed
    assert typed[-1] == 257
    assert tokenizer.encode("<|im_end|><tool>", add_special=False, parse_special=True) == [256, 257]


def test_texts_that_end_a_turn_become_control_tokens_and_end_a_generation(load: Load) -> None:
    tokenizer = load(vocabulary(("<|im_end|>", craft.NORMAL), ("<eos>", craft.USER_DEFINED), ("<x>", craft.CONTROL)))
    assert tokenizer.special.eot == 256
    assert {256, 257} <= tokenizer.eog
    assert 258 not in tokenizer.eog
    assert tokenizer.decode([256, 257, 258]) == ""


def test_harmony_end_is_no_end_where_return_and_call_are_there(load: Load) -> None:
    tokenizer = load(vocabulary(*[(text, craft.CONTROL) for text in ("<|end|>", "<|return|>", "<|call|>")]))
    assert 256 not in tokenizer.eog
    assert {257, 258} <= tokenizer.eog
    assert tokenizer.decode([256]) == "<|end|>"
    alone = load(vocabulary(("<|end|>", craft.CONTROL)))
    assert 256 in alone.eog


def test_keys_name_the_end_tokens_before_texts_do(load: Load) -> None:
    keys = vocabulary(
        ("<done>", craft.CONTROL), ("<EOT>", craft.CONTROL), eot_token_id=craft.token_id("eot_token_id", 256)
    )
    tokenizer = load(keys)
    assert tokenizer.special.eot == 256
    assert {256, 257} <= tokenizer.eog


def test_fim_padding_ends_a_generation_and_a_fim_prefix_does_not(load: Load) -> None:
    tokenizer = load(vocabulary(("<|fim_pad|>", craft.CONTROL), ("<|fim_prefix|>", craft.CONTROL)))
    assert 256 in tokenizer.eog
    assert 257 not in tokenizer.eog


def test_an_id_outside_the_vocabulary_is_ignored_as_llama_cpp_ignores_it(load: Load) -> None:
    tokenizer = load(vocabulary(("<a>", craft.CONTROL), eos_token_id=craft.token_id("eos_token_id", 4000)))
    assert tokenizer.eos == 11, "the id that a gpt2 vocabulary has by itself"


def test_bos_and_eos_stand_around_a_text_where_the_file_asks_for_them(load: Load) -> None:
    keys = vocabulary(
        ("<b>", craft.CONTROL),
        ("<e>", craft.CONTROL),
        bos_token_id=craft.token_id("bos_token_id", 256),
        eos_token_id=craft.token_id("eos_token_id", 257),
        add_bos_token=craft.flag("add_bos_token", True),
        add_eos_token=craft.flag("add_eos_token", True),
    )
    tokenizer = load(keys)
    assert tokenizer.encode("") == [256, 257]
    assert tokenizer.encode("a")[::2] == [256, 257]
    assert tokenizer.encode("a", add_special=False) != tokenizer.encode("a")


def test_gemma4_has_bos_whatever_its_file_says(load: Load) -> None:
    keys = craft.gemma4()
    keys["tokenizer.ggml.add_bos_token"] = craft.flag("add_bos_token", False)
    assert load(keys).encode("a")[0] == 2


def test_a_bos_that_is_asked_for_and_not_there_is_one_sentence(load: Load) -> None:
    keys = craft.gemma4()
    del keys["tokenizer.ggml.bos_token_id"]
    with pytest.raises(TokenizerError, match="asks for a BOS token"):
        load(keys).encode("a")
