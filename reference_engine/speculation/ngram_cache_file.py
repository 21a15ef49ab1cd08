# SPDX-License-Identifier: Apache-2.0
"""Lookup cache files of llama.cpp (``--lookup-cache-static``, ``--lookup-cache-dynamic``), read and written.

Format (common/ngram-cache.cpp, b11434), all int32 in the byte order of the machine, which is little-endian on every one
that runs it: four tokens of an n-gram (-1 where it is shorter), how many tokens followed it, and for each of them the
token and its count.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from pathlib import Path

from reference_engine.speculation.drafter import SpeculationError
from reference_engine.speculation.ngram_cache import NGRAM_MAX, Counts, Ngram

_HEAD = struct.Struct("<5i")
_PAIR = struct.Struct("<2i")
_NONE = -1
_INT32_MAX = (1 << 31) - 1


def read_counts(path: Path) -> Counts:
    """SpeculationError, with the byte, for anything that llama.cpp would abort on."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise SpeculationError(f"cannot read lookup cache {path}: it is no file, and may never end")
        data = path.read_bytes()
    except OSError as error:
        raise SpeculationError(f"cannot read lookup cache {path}: {error.strerror}") from error
    counts: Counts = {}
    at = 0
    while at < len(data):
        if len(data) - at < _HEAD.size:
            raise _broken(path, at, "the file ends within an n-gram")
        *tokens, followers = _HEAD.unpack_from(data, at)
        size = tokens.index(_NONE) if _NONE in tokens else NGRAM_MAX
        if size == 0 or any(token < 0 for token in tokens[:size]) or any(token != _NONE for token in tokens[size:]):
            raise _broken(path, at, f"no n-gram has the tokens {tokens}")
        if followers <= 0 or followers > (len(data) - at - _HEAD.size) // _PAIR.size:
            raise _broken(path, at + 16, f"{followers} followers in {len(data) - at - _HEAD.size} bytes")
        at += _HEAD.size
        part: dict[int, int] = {}
        for token, times in _PAIR.iter_unpack(data[at : at + followers * _PAIR.size]):
            if token < 0 or times <= 0:
                raise _broken(path, at, f"token {token} with count {times}")
            part.setdefault(token, times)
        # As llama.cpp does, the first of two entries for one n-gram holds.
        counts.setdefault(tuple(tokens[:size]), part)
        at += followers * _PAIR.size
    return counts


def write_counts(path: Path, counts: Mapping[Ngram, Mapping[int, int]]) -> None:
    """The same counts give the same bytes (sorted). The file appears whole or not at all."""
    out = bytearray()
    for ngram in sorted(counts):
        followers = counts[ngram]
        if not followers:
            continue
        out += _HEAD.pack(*ngram, *[_NONE] * (NGRAM_MAX - len(ngram)), len(followers))
        for token in sorted(followers):
            out += _PAIR.pack(token, min(followers[token], _INT32_MAX))
    aside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        aside.write_bytes(out)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise SpeculationError(f"cannot write lookup cache {path}: {error.strerror}") from error


def _broken(path: Path, at: int, why: str) -> SpeculationError:
    return SpeculationError(f"{path} is no lookup cache: {why} at byte {at}; make it anew with --lookup-corpus")
