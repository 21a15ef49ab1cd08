# SPDX-License-Identifier: Apache-2.0
"""The vocabulary as the file gives it: texts, ids, scores and flags, each checked against the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reference_engine.gguf_errors import KEY_TYPE, KEY_VALUE, GgufError, quoted
from reference_engine.gguf_types import FLOATS, INTEGERS
from reference_engine.gguf_values import Metadata
from reference_engine.gguf_vocabulary import TOKENS_KEY
from reference_engine.tokenizer.token_flags import NORMAL, flags_of

SCORES_KEY = "tokenizer.ggml.scores"
TYPES_KEY = "tokenizer.ggml.token_type"

LONGEST_TOKEN = 65_535
"""Characters. The longest of published vocabularies have a few hundred (runs of spaces)."""


@dataclass(frozen=True)
class Vocabulary:
    """``texts[id]`` as in the file, ``ids`` the way back, ``flags[id]`` of token_flags, ``scores[id]`` (SPM only)."""

    texts: list[str]
    ids: Mapping[str, int]
    flags: bytearray
    warnings: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)


def read_vocabulary(metadata: Metadata) -> Vocabulary:
    """GgufError with the key's name for a vocabulary that contradicts itself.

    An empty token is called ``[EMPTY_<id>]``, as llama.cpp calls it, and warned of; a text that stands twice is
    refused, since the way back from it would be a guess (llama.cpp stops there too).
    """
    texts: list[str] = metadata.strings(TOKENS_KEY).tolist()
    offset = metadata.offset(TOKENS_KEY)
    if not texts:
        raise GgufError(KEY_VALUE, f"key '{TOKENS_KEY}' has no items", offset)
    warnings: list[str] = []
    empty = [index for index, text in enumerate(texts) if not text]
    for index in empty:
        texts[index] = f"[EMPTY_{index}]"
    if empty:
        warnings.append(f"{len(empty)} tokens have no text, the first is token {empty[0]}; no text becomes them")
    longest = max(range(len(texts)), key=lambda index: len(texts[index]))
    if len(texts[longest]) > LONGEST_TOKEN:
        raise GgufError(
            KEY_VALUE,
            f"token {longest} of '{TOKENS_KEY}' has {len(texts[longest])} characters; {LONGEST_TOKEN} are the most",
            offset,
        )
    ids = {text: index for index, text in enumerate(texts)}
    if len(ids) != len(texts):
        first, second = _first_pair(texts)
        raise GgufError(
            KEY_VALUE, f"tokens {first} and {second} of '{TOKENS_KEY}' are both {quoted(texts[first])}", offset
        )
    return Vocabulary(texts, ids, _flags(metadata, len(texts)), tuple(warnings))


def read_scores(metadata: Metadata, n_vocab: int) -> list[float]:
    """One score for each token, zeros where the file has none. GgufError for NaN, which has no place in an order."""
    if SCORES_KEY not in metadata:
        return [0.0] * n_vocab
    scores = _numbers(metadata, SCORES_KEY, n_vocab, integers_only=False)
    if np.isnan(scores).any():
        at = int(np.isnan(scores).argmax())
        raise GgufError(KEY_VALUE, f"item {at} of '{SCORES_KEY}' is not a number", metadata.offset(SCORES_KEY))
    out: list[float] = scores.tolist()
    return out


def _flags(metadata: Metadata, n_vocab: int) -> bytearray:
    if TYPES_KEY not in metadata:
        return bytearray([NORMAL]) * n_vocab
    return flags_of(_numbers(metadata, TYPES_KEY, n_vocab, integers_only=True))


def _numbers(metadata: Metadata, key: str, n_vocab: int, *, integers_only: bool) -> NDArray[np.float64]:
    kinds, what = (INTEGERS, "integers") if integers_only else (INTEGERS | FLOATS, "numbers")
    found = metadata.array(key, kinds, what)
    if len(found) < n_vocab:
        raise GgufError(
            KEY_TYPE,
            f"key '{key}' has {len(found)} items for {n_vocab} tokens; it must have one each",
            metadata.offset(key),
        )
    return found.numpy()[:n_vocab].astype(np.float64)


def _first_pair(texts: list[str]) -> tuple[int, int]:
    """Ids of the first text that stands a second time."""
    seen: dict[str, int] = {}
    for index, text in enumerate(texts):
        if text in seen:
            return seen[text], index
        seen[text] = index
    raise AssertionError("every text stands once")
