# SPDX-License-Identifier: Apache-2.0
"""The manifest of goldens holds what it was given, and takes nothing else."""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.goldens.manifest import DIGITS, Entry, ManifestError, by_key, file_sha256, ids_sha256, read, write

ENTRY = Entry("m", "a" * 64, "float", "prose", "b" * 64, 2, "c" * 64, (0.25, 3.5), "python -m something")
HEX = st.text("0123456789abcdef", min_size=64, max_size=64)
MARGINS = st.lists(st.floats(0, 1e6).map(lambda margin: round(margin, DIGITS)), max_size=5).map(tuple)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    margins = draw(MARGINS)
    words = st.text(max_size=8)
    return Entry(
        draw(words), draw(HEX), draw(words), draw(words), draw(HEX), len(margins), draw(HEX), margins, draw(words)
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(entries(), max_size=4, unique_by=lambda entry: entry.key))
def test_what_was_written_is_read(tmp_path_factory: pytest.TempPathFactory, found: list[Entry]) -> None:
    path = tmp_path_factory.mktemp("goldens") / "manifest.json"
    write(path, found)
    assert by_key(read(path)) == by_key(found)
    first = path.read_bytes()
    write(path, reversed(found))
    assert path.read_bytes() == first


def test_the_hash_of_ids_is_that_of_little_endian_int32() -> None:
    assert ids_sha256([1, 70000, 0]) == hashlib.sha256(struct.pack("<3i", 1, 70000, 0)).hexdigest()


def test_the_hash_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(b"x" * (3 << 20))
    assert file_sha256(tmp_path / "m") == hashlib.sha256(b"x" * (3 << 20)).hexdigest()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"magic": "another"}, "its magic is not"),
        ({"version": 2}, "has version 2"),
        ({"entries": {}}, "entries is no list"),
        ({"entries": [{}]}, "entry 0 has not the fields"),
    ],
)
def test_another_document_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "m.json"
    write(path, [ENTRY])
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ManifestError, match=message):
        read(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_tokens": 3}, "2 margins for 3 tokens"),
        ({"n_tokens": True}, "n_tokens is no count"),
        ({"margins_nats": [1.0, "x"]}, "no list of numbers"),
        ({"token_ids_sha256": "C" * 64}, "token_ids_sha256 is no sha256"),
        ({"model": 5}, "model is no text"),
    ],
)
def test_a_wrong_entry_is_refused_with_its_number(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "m.json"
    write(path, [replace(ENTRY, model="first"), ENTRY])
    document = json.loads(path.read_text())
    document["entries"][1].update(change)
    path.write_text(json.dumps(document))
    with pytest.raises(ManifestError, match=f"entry 1.*{message}"):
        read(path)


def test_an_entry_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "m.json", [ENTRY, ENTRY])
    with pytest.raises(ManifestError, match="twice"):
        read(tmp_path / "m.json")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read as a manifest"):
        read(tmp_path / "none.json")
