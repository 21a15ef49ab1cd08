# SPDX-License-Identifier: Apache-2.0
"""How a text is cut into words before the merges of a BPE vocabulary: a table from ``tokenizer.ggml.pre``.

The names and what each means are llama.cpp's (b11434, llama-vocab.cpp lines 280 to 570 and 2180 to 2470); the patterns
are those of the models' own tokenizer.json files, in Oniguruma's syntax. Case-insensitive parts are written as
character classes: under (?i) Oniguruma would fold U+017F to s, which llama.cpp does not.
"""

from __future__ import annotations

from dataclasses import dataclass

_CONTRACTIONS = "'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]"
_PUNCTUATION_TO_NEWLINE = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
_LLAMA3 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_PUNCTUATION_TO_NEWLINE}|{_SPACES}"
_QWEN2 = rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}|{_PUNCTUATION_TO_NEWLINE}|{_SPACES}"
_QWEN35 = (
    rf"{_CONTRACTIONS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_SPACES}"
)


@dataclass(frozen=True)
class PreTokenizer:
    """``patterns`` cut one after the other, each inside the pieces of the one before; what none matches stays a piece.

    ``ignore_merges``: a word that is a token as a whole becomes it. ``add_bos``: unless the file says otherwise.
    ``spaces_escaped``: SentencePiece-like BPE (Gemma 4): U+2581 for spaces, no byte-level alphabet.
    """

    patterns: tuple[str, ...]
    ignore_merges: bool = False
    add_bos: bool = False
    spaces_escaped: bool = False


DEFAULT = PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]"))
"""What llama.cpp falls back to where a file names none."""

_GPT2_LIKE = PreTokenizer((_GPT2,))
_DIGIT_THEN_GPT2 = PreTokenizer((r"\p{N}", _GPT2))
_LLAMA3_LIKE = PreTokenizer((_LLAMA3,), ignore_merges=True, add_bos=True)
_QWEN2_LIKE = PreTokenizer((_QWEN2,))
_GEMMA4_LIKE = PreTokenizer((), spaces_escaped=True)

_FAMILIES: tuple[tuple[PreTokenizer, str], ...] = (
    (DEFAULT, "default"),
    (
        _GPT2_LIKE,
        "gpt-2 phi-2 jina-es jina-de jina-v2-es jina-v2-de gigachat a.x-4.0 mellum modern-bert mpt olmo jais exaone4",
    ),
    (_GPT2_LIKE, "trillion granite-docling"),
    (_DIGIT_THEN_GPT2, "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2"),
    (_LLAMA3_LIKE, "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano"),
    (PreTokenizer((_LLAMA3,)), "dbrx smaug-bpe chatglm-bpe"),
    (PreTokenizer((_LLAMA3,), ignore_merges=True), "glm4 glm5"),
    (_QWEN2_LIKE, "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2"),
    (PreTokenizer((_QWEN35,)), "qwen35"),
    (_GEMMA4_LIKE, "gemma4 granite-embed-multi-311m"),
)

PRE_TOKENIZERS = {name: family for family, names in _FAMILIES for name in names.split()}
