# SPDX-License-Identifier: Apache-2.0
"""The SPM merge against a slow one that looks at all pairs each time, and what it falls back to."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.tokenizer import TokenizerError
from reference_engine.tokenizer.spm import SpmEncoder


def merged_slowly(text: str, scores: dict[str, float]) -> list[str]:
    """Of all neighbours whose concatenation is a token, merge the best, of equals the leftmost, and look again."""
    parts = list(text)
    while True:
        candidates = [(scores[a + b], -at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in scores]
        if not candidates:
            return parts
        at = -max(candidates)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@settings(max_examples=400, deadline=None)
@given(
    words=st.dictionaries(st.text("abc", min_size=2, max_size=5), st.sampled_from([-3.0, -2.0, -1.0, 0.0, 1.5])),
    text=st.text("abc", max_size=24),
)
def test_merges_equal_those_of_a_search_over_all_pairs(words: dict[str, float], text: str) -> None:
    tokens = ["a", "b", "c", *words]
    ids = {token: index for index, token in enumerate(tokens)}
    encoder = SpmEncoder(ids, [0.0, 0.0, 0.0, *words.values()], None)
    assert encoder.encode(text) == [ids[part] for part in merged_slowly(text, words)]


def test_a_character_without_a_token_becomes_its_bytes() -> None:
    ids = {f"<0x{byte:02X}>": byte for byte in range(256)}
    assert SpmEncoder(ids, [0.0] * 256, 9).encode("é") == [0xC3, 0xA9]


def test_without_byte_tokens_it_becomes_the_unknown_token_and_without_that_a_sentence() -> None:
    assert SpmEncoder({"a": 0, "<unk>": 1}, [0.0, 0.0], 1).encode("aéa") == [0, 1, 0]
    with pytest.raises(TokenizerError, match=r"no token for the character U\+00E9"):
        SpmEncoder({"a": 0}, [0.0], None).encode("é")


def test_a_long_run_takes_no_quadratic_time() -> None:
    tokens = ["a" * length for length in (1, 2, 4, 8, 16)]
    ids = {token: index for index, token in enumerate(tokens)}
    encoder = SpmEncoder(ids, [-0.0, -1.0, -2.0, -3.0, -4.0], None)
    assert encoder.encode("a" * 64_000) == [4] * 4000
