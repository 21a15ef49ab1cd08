# SPDX-License-Identifier: Apache-2.0
"""Lookup cache files: written and read back, and refused with the byte where llama.cpp would abort."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.ngram_cache import Counts, count, merge
from reference_engine.speculation.ngram_cache_file import read_counts, write_counts

TOKENS = st.integers(0, (1 << 31) - 1)
COUNTS = st.dictionaries(
    st.lists(TOKENS, min_size=1, max_size=4).map(tuple),
    st.dictionaries(TOKENS, st.integers(1, 1 << 20), min_size=1, max_size=5),
    max_size=20,
)


@settings(max_examples=50, deadline=None)
@given(counts=COUNTS)
def test_what_is_written_is_read(counts: Counts, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("lookup") / "cache.bin"
    write_counts(path, counts)
    assert read_counts(path) == counts
    first = path.read_bytes()
    write_counts(path, dict(reversed(counts.items())))
    assert path.read_bytes() == first
    assert list(path.parent.iterdir()) == [path]


def test_a_file_laid_out_by_hand_is_read(tmp_path: Path) -> None:
    """One n-gram of two tokens with two followers, as llama.cpp lays it out."""
    path = tmp_path / "cache.bin"
    path.write_bytes(struct.pack("<9i", 5, 6, -1, -1, 2, 7, 3, 8, 1))
    assert read_counts(path) == {(5, 6): {7: 3, 8: 1}}


@pytest.mark.parametrize(
    ("values", "byte", "why"),
    [
        ((5, 6, -1), 0, "ends within"),
        ((5, 6, -1, -1, 0), 16, "0 followers"),
        ((5, 6, -1, -1, -4), 16, "-4 followers"),
        ((5, 6, -1, -1, 1 << 30, 1, 1), 16, "1073741824 followers"),
        ((5, 6, -1, -1, 1, 7), 16, "1 followers in 4 bytes"),
        ((5, 6, -1, -1, 1, 7, 0), 20, "token 7 with count 0"),
        ((5, 6, -1, -1, 1, -7, 1), 20, "token -7"),
        ((-1, 6, -1, -1, 1, 7, 1), 0, "no n-gram"),
        ((5, -1, 6, -1, 1, 7, 1), 0, "no n-gram"),
    ],
)
def test_broken_files_are_refused_with_the_byte(tmp_path: Path, values: tuple[int, ...], byte: int, why: str) -> None:
    path = tmp_path / "cache.bin"
    path.write_bytes(struct.pack(f"<{len(values)}i", *values))
    with pytest.raises(SpeculationError, match=rf"{why}.* at byte {byte};"):
        read_counts(path)


def test_a_missing_file_and_a_folder_that_cannot_be_written_are_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(SpeculationError, match=r"cannot read lookup cache .*No such file"):
        read_counts(tmp_path / "none")
    with pytest.raises(SpeculationError, match=r"cannot write lookup cache"):
        write_counts(tmp_path / "no" / "cache.bin", {(1,): {2: 3}})


def test_what_may_never_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SpeculationError, match="no file, and may never end"):
            read_counts(path)


def test_counts_of_two_texts_add_up_to_those_of_both() -> None:
    one: Counts = {}
    other: Counts = {}
    count(one, [1, 2, 1, 2, 1], 5)
    count(other, [2, 1, 1], 3)
    merge(one, other)
    assert one[(1,)] == {2: 2, 1: 1}
    assert one[(2, 1)] == {2: 1, 1: 1}


@settings(max_examples=50, deadline=None)
@given(text=st.lists(st.integers(0, 3), max_size=30), cut=st.integers(0, 30))
def test_counting_in_two_goes_is_counting_at_once(text: list[int], cut: int) -> None:
    cut = min(cut, len(text))
    whole: Counts = {}
    parts: Counts = {}
    count(whole, text, len(text))
    count(parts, text[:cut], cut)
    count(parts, text, len(text) - cut)
    assert parts == whole
