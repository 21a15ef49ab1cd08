# SPDX-License-Identifier: Apache-2.0
"""Byte-pair tokenizing through the ``tokenizers`` library, built from the file's tokens and merges alone."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from reference_engine.gguf_errors import KEY_VALUE, GgufError, quoted
from reference_engine.gguf_tensor import MissingPackage
from reference_engine.tokenizer.pieces import ESCAPED_SPACE
from reference_engine.tokenizer.pre_tokenizers import PreTokenizer

_LINES = re.compile(r"[^\n]+|\n+")


class BpeEncoder:
    """Text without special tokens to ids.

    Byte-level vocabularies: the text is cut into words by the pre-tokenizer's patterns, each word's bytes are written
    in the byte alphabet and merged by rank. SentencePiece-like ones (Gemma 4): spaces become U+2581, the text is cut at
    runs of newlines only, a run that is a token is taken whole, and what no token covers becomes byte tokens.
    """

    def __init__(
        self, ids: Mapping[str, int], merges: Sequence[tuple[str, str]], pre: PreTokenizer, offset: int | None = None
    ) -> None:
        """GgufError for merges of what is no token, with the byte ``offset``; MissingPackage without the library."""
        library = _library()
        self._ids = ids
        self._escaped = pre.spaces_escaped
        # the library's vocabulary takes UTF-8 only; a token that is none can be the result of no merge
        vocab = {text: token for text, token in ids.items() if text.isascii() or _is_unicode(text)}
        # the library checks the halves itself, but it panics at a product longer than any token (tokenizers 0.23.3)
        _check_merges(merges, vocab, offset)
        try:
            model = library.models.BPE(
                vocab=vocab, merges=merges, ignore_merges=pre.ignore_merges, byte_fallback=pre.spaces_escaped
            )
        except Exception as error:  # the library raises bare Exception
            raise GgufError(
                KEY_VALUE, f"key 'tokenizer.ggml.merges' cannot be used: {quoted(error, 200)}", offset
            ) from error
        self._tokenizer = library.Tokenizer(model)
        if not pre.spaces_escaped:
            cuts = library.pre_tokenizers
            self._tokenizer.pre_tokenizer = cuts.Sequence(
                [
                    *(cuts.Split(library.Regex(pattern), "isolated") for pattern in pre.patterns),
                    cuts.ByteLevel(add_prefix_space=False, use_regex=False),
                ]
            )

    def encode(self, text: str) -> list[int]:
        """Ids of ``text``. Bytes that the vocabulary cannot express are left out, as llama.cpp leaves them out."""
        if not self._escaped:
            return list(self._tokenizer.encode(text, add_special_tokens=False).ids)
        out: list[int] = []
        for line in _LINES.findall(text.replace(" ", ESCAPED_SPACE)):
            whole = self._ids.get(line) if line[0] == "\n" else None
            if whole is None:
                out.extend(self._tokenizer.encode(line, add_special_tokens=False).ids)
            else:
                out.append(whole)
        return out


def split_merges(merges: Sequence[str], offset: int | None) -> list[tuple[str, str]]:
    """Each merge as its two halves, cut at the first space after the first character. GgufError where there is none."""
    out = []
    for index, merge in enumerate(merges):
        at = merge.find(" ", 1)
        if at < 0 or at + 1 == len(merge):
            raise GgufError(KEY_VALUE, f"item {index} of 'tokenizer.ggml.merges', {quoted(merge)}, is no pair", offset)
        out.append((merge[:at], merge[at + 1 :]))
    return out


def _check_merges(merges: Sequence[tuple[str, str]], vocab: Mapping[str, int], offset: int | None) -> None:
    """GgufError where a half of a merge, or what it yields, is no token."""
    needed = {text for left, right in merges for text in (left, right, left + right)}
    if needed <= vocab.keys():
        return
    for index, (left, right) in enumerate(merges):
        missing = next((text for text in (left, right, left + right) if text not in vocab), None)
        if missing is not None:
            raise GgufError(
                KEY_VALUE, f"item {index} of 'tokenizer.ggml.merges' needs {quoted(missing)}, which is no token", offset
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _library() -> Any:
    try:
        return importlib.import_module("tokenizers")
    except ImportError as error:
        raise MissingPackage(
            f"A BPE vocabulary needs the tokenizers package, which cannot be imported ({error}): "
            "in the checkout: pip install '.[engine]'"
        ) from error
