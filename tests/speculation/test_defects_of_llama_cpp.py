# SPDX-License-Identifier: Apache-2.0
"""Each known defect of llama.cpp's strategies: shown with ``compat``, absent without."""

from __future__ import annotations

import pytest

from reference_engine.speculation.drafter import Drafter, Round, SpeculationError
from reference_engine.speculation.ngram_cache import NgramCache
from reference_engine.speculation.ngram_map import NgramMap
from reference_engine.speculation.ngram_map_compat import NgramMapCompat
from reference_engine.speculation.ngram_mod import NgramMod
from reference_engine.speculation.ngram_simple import NgramSimple

LONG = 10**6


def drafted(drafter: Drafter, text: list[int]) -> list[int]:
    """The draft when all of ``text`` but its last token is in the cache."""
    return drafter.draft(Round(text[:-1], text[-1], LONG))


def test_ngram_simple_never_finds_the_beginning_of_the_text() -> None:
    text = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2]
    assert drafted(NgramSimple(2, 3, compat=True), text) == []
    assert drafted(NgramSimple(2, 3), text) == [3, 4, 5]


def test_ngram_simple_drafts_nothing_where_little_follows() -> None:
    text = [9, 9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 1, 2, 3]
    assert drafted(NgramSimple(3, 5, compat=True), text) == []
    assert drafted(NgramSimple(3, 5), text) == [1, 2, 3]


@pytest.mark.parametrize("compat", [True, False])
def test_min_hits_of_ngram_map_k(compat: bool) -> None:
    drafter: Drafter = NgramMapCompat(2, 3, min_hits=3) if compat else NgramMap(2, 3, min_hits=3)
    text = [0, 1, 2, 3, 4, 5] * 3 + [1, 2]
    drafter.begin(text[:-1])
    assert bool(drafted(drafter, text)) is compat


@pytest.mark.parametrize("compat", [True, False])
def test_a_key_whose_draft_failed_once(compat: bool) -> None:
    drafter: Drafter = NgramMapCompat(2, 3) if compat else NgramMap(2, 3)
    text = [0, 1, 2, 3, 4, 5] * 3 + [1, 2]
    drafter.begin(text[:-1])
    assert drafted(drafter, text) == [3, 4, 5]
    drafter.accept(0, len(text), own=True)
    again = [*text, 0, 1, 2]
    assert drafted(drafter, again) == ([] if compat else [3])
    drafter.accept(0 if compat else 1, len(again), own=True)
    third = [*again, 0, 1, 2]
    assert len(drafted(drafter, third)) == (0 if compat else 3)


def test_k4v_drafts_the_continuation_that_it_counted() -> None:
    often, once = [1, 2, 3, 3, 3, 0], [1, 2, 4, 4, 4, 0]
    text = [9, 9, *often * 5, *once, 9, 9, 9, 9, 9, 9, 1, 2]
    right, compat = NgramMap(2, 3, only_keys=False), NgramMapCompat(2, 3, only_keys=False)
    assert drafted(right, text) == [3, 3, 3]
    compat.begin(text[:-1])
    assert drafted(compat, text) == [4, 4, 4]


def test_a_text_that_got_shorter_ends_llama_cpp() -> None:
    long = [0, 1, 2, 3, 4, 5] * 8
    compat, right = NgramMapCompat(2, 3), NgramMap(2, 3)
    for drafter in (compat, right):
        drafter.begin(long[:-1])
        drafted(drafter, long)
    short = [0, 1, 2, 3, 4, 5] * 2 + [1, 2]
    with pytest.raises(SpeculationError, match=r"llama\.cpp aborts here: .*idx_last_check > cur_len: 47 > 13"):
        drafted(compat, short)
    assert drafted(right, short) == [3, 4, 5]


@pytest.mark.parametrize("compat", [True, False])
def test_ngram_mod_knows_the_last_request(compat: bool) -> None:
    """Why a benchmark that repeats its prompt measures nothing: the second answer is drafted from the first."""
    drafter = NgramMod(4, 1, 8, compat=compat)
    answer = list(range(100, 140))
    drafter.begin([1, 2, 3, 4, 5])
    drafted(drafter, [1, 2, 3, 4, 5, *answer])
    drafter.begin([1, 2, 3, 4, 5])
    known = drafted(drafter, [1, 2, 3, 4, 5, *answer[:4]])
    assert known == (answer[4:12] if compat else [])


def test_collisions_in_the_table_of_ngram_mod_draft_wrong_tokens_only_with_compat() -> None:
    # Two n-grams of one token, 4 Mi apart, share a slot.
    text = [5, 77, 1, 2, 3]
    compat, right = NgramMod(1, 1, 1, compat=True), NgramMod(1, 1, 1)
    for drafter in (compat, right):
        drafter.begin(text)
    assert drafted(compat, [*text, 5 + (1 << 22)]) == [77]
    assert drafted(right, [*text, 5 + (1 << 22)]) == []


def test_ngram_cache_learns_nothing_from_what_it_generates() -> None:
    prompt = [1, 2, 3, 4, 5, 6, 7, 8]
    compat, right = NgramCache(compat=True), NgramCache()
    answer = [20, 21, 22, 23, 24, 25] * 3
    for drafter in (compat, right):
        drafter.begin(prompt[:-1])
        for n in range(len(answer)):
            drafted(drafter, [*prompt, *answer[:n]])
    assert drafted(right, [*prompt, *answer])[:3] == [20, 21, 22]
    assert drafted(compat, [*prompt, *answer]) == []


def test_ngram_cache_keeps_the_last_request_and_skips_a_shorter_one() -> None:
    first = [1, 2, 3, 4] * 6
    compat, right = NgramCache(compat=True), NgramCache()
    for drafter in (compat, right):
        drafter.begin(first[:-1])
        drafted(drafter, first)
    second = [1, 2, 9, 1, 2, 9, 1, 2]
    for drafter in (compat, right):
        drafter.begin(second[:-1])
    assert drafted(compat, second)[:1] == [3]
    assert drafted(right, second)[:1] == [9]
