# SPDX-License-Identifier: Apache-2.0
"""Do a draft and its target speak of the same tokens? A draft with another vocabulary is never right, only slow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import zip_longest

from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_vocabulary import TOKENS_KEY
from reference_engine.tokenizer.pre_tokenizers import PRE_TOKENIZERS

MAX_SIZE_DIFFERENCE = 128
FIRST_COMPARED = 5
"""llama.cpp b11434 compares texts from this id on: files differ in how they name the first special tokens."""

_MERGES_KEY = "tokenizer.ggml.merges"
_MODEL_KEY = "tokenizer.ggml.model"
_PRE_KEY = "tokenizer.ggml.pre"


@dataclass(frozen=True)
class _Kind:
    """What llama.cpp b11434 (src/llama-vocab.cpp) takes where the file does not say: its type, and special tokens."""

    type: str
    bos: int | None = None
    eos: int | None = None
    add_bos: bool = False
    add_eos: bool = False


_KINDS = {
    "llama": _Kind("SPM", 1, 2, add_bos=True),
    "bert": _Kind("WPM", 101, None, add_bos=True),
    "gpt2": _Kind("BPE", 11, 11),
    "hybriddna": _Kind("BPE", 11, 11),
    "whitespace": _Kind("BPE", 11, 11),
    "gemma4": _Kind("BPE", add_bos=True),
    "t5": _Kind("UGM", None, 1, add_eos=True),
    "plamo2": _Kind("PLAMO2", 1, 2),
}


@dataclass(frozen=True)
class Identity:
    """sha256 over the token texts and over the merges, each text followed by a zero byte; None where there are none."""

    model: str | None
    n_tokens: int
    tokens_sha256: str | None
    merges_sha256: str | None


@dataclass(frozen=True)
class Comparison:
    """``identical``: tokenizer, tokens and merges are the same. ``compatible``: llama.cpp takes the pair.

    ``difference``: the first one found, in words, or None.
    """

    target: Identity
    draft: Identity
    identical: bool
    compatible: bool
    difference: str | None

    def sentence(self) -> str:
        """Both hashes, by their first twelve digits, and what they say."""
        (tokens, merges), others = (_hashes(it) for it in (self.target, self.draft))
        if self.identical:
            return f"vocabulary of target and draft: identical (sha256 of {tokens}, of {merges})"
        return (
            f"vocabulary of target and draft: {self.difference} (sha256 of {tokens}, of {merges}; the draft's of "
            f"{others[0]}, of {others[1]})"
        )

    def document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "identical": self.identical,
            "compatible": self.compatible,
            "difference": self.difference,
            "target": asdict(self.target),
            "draft": asdict(self.draft),
        }


def _hashes(it: Identity) -> tuple[str, str]:
    """Of the tokens and of the merges, in words."""
    named = (("tokens", it.tokens_sha256), ("merges", it.merges_sha256))
    tokens, merges = (f"{name} {'none' if sha is None else sha[:12]}" for name, sha in named)
    return tokens, merges


def identity(model: GgufFile) -> Identity:
    """GgufError where the vocabulary's keys have other types."""
    metadata = model.metadata
    tokens = metadata.strings(TOKENS_KEY) if TOKENS_KEY in metadata else None
    merges = metadata.strings(_MERGES_KEY) if _MERGES_KEY in metadata else None
    return Identity(
        metadata.text(_MODEL_KEY) if _MODEL_KEY in metadata else None,
        len(tokens) if tokens is not None else 0,
        _sha256(tokens) if tokens is not None else None,
        _sha256(merges) if merges is not None else None,
    )


def compare(target: GgufFile, draft: GgufFile) -> Comparison:
    """Hold both vocabularies against each other, by hash and by llama.cpp's rule of acceptance."""
    mine, other = identity(target), identity(draft)
    identical = mine == other
    refusal = _refusal(target, draft, mine, other)
    difference = refusal
    if not identical and difference is None:
        difference = _first_difference(target, draft)
    return Comparison(mine, other, identical, refusal is None, difference)


def _refusal(target: GgufFile, draft: GgufFile, mine: Identity, other: Identity) -> str | None:
    """Why llama.cpp would refuse the pair: type, begin and end tokens, size, texts; None where it would not."""
    if mine.n_tokens == 0 or other.n_tokens == 0:
        return f"the {'target' if mine.n_tokens == 0 else 'draft'} has no vocabulary to compare"
    if _kind(mine.model).type != _kind(other.model).type:
        return f"the target's tokenizer is {mine.model!r}, the draft's {other.model!r}"
    for special in ("bos", "eos"):
        (adds, token), (others_adds, others_token) = (_special(model, special) for model in (target, draft))
        if adds != others_adds:
            article = "an" if special == "eos" else "a"
            return f"one adds {article} {special} token and the other does not (target {adds}, draft {others_adds})"
        if adds and token != others_token:
            return f"the {special} token is {token} in the target and {others_token} in the draft"
    if abs(mine.n_tokens - other.n_tokens) > MAX_SIZE_DIFFERENCE:
        sizes = f"the target has {mine.n_tokens} tokens and the draft {other.n_tokens}"
        return f"{sizes}: more than {MAX_SIZE_DIFFERENCE} apart"
    return None if mine.tokens_sha256 == other.tokens_sha256 else _first_text(target, draft, FIRST_COMPARED)


def _first_difference(target: GgufFile, draft: GgufFile) -> str:
    """What differs in a pair that llama.cpp takes."""
    found = _first_text(target, draft, 0)
    if found is not None:
        return found
    sizes = [len(model.metadata.strings(TOKENS_KEY)) for model in (target, draft)]
    if sizes[0] != sizes[1]:
        return f"the target has {sizes[0]} tokens, the draft {sizes[1]}"
    merges = [model.metadata.strings(_MERGES_KEY) if _MERGES_KEY in model.metadata else () for model in (target, draft)]
    for i, (mine, other) in enumerate(zip_longest(*merges)):
        if mine != other:
            return f"merge {i} is {mine!r} in the target and {other!r} in the draft"
    return "the vocabularies differ"


def _first_text(target: GgufFile, draft: GgufFile, first: int) -> str | None:
    pairs = zip(target.metadata.strings(TOKENS_KEY), draft.metadata.strings(TOKENS_KEY), strict=False)
    for i, (mine, other) in enumerate(pairs):
        if i >= first and mine != other:
            return f"token {i} is {mine!r} in the target and {other!r} in the draft"
    return None


def _sha256(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest()


def _kind(model: str | None) -> _Kind:
    return _KINDS.get(model or "", _Kind(model or ""))


def _special(model: GgufFile, special: str) -> tuple[bool, int | None]:
    """Whether the bos or eos token is added to a text, and its id."""
    metadata = model.metadata
    name = metadata.text(_MODEL_KEY, None)
    kind = _kind(name)
    if special == "eos":
        adds, token = kind.add_eos, kind.eos
    else:
        pre = PRE_TOKENIZERS.get(metadata.text(_PRE_KEY, ""))
        adds, token = kind.add_bos or (kind.type == "BPE" and pre is not None and pre.add_bos), kind.bos
    adds = metadata.boolean(f"tokenizer.ggml.add_{special}_token", adds)
    if name == "gemma4" and special == "bos":
        adds = True  # whatever the file says (llama.cpp's pull request 21500)
    return adds, metadata.integer(f"tokenizer.ggml.{special}_token_id", token)
