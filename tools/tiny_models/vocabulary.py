# SPDX-License-Identifier: Apache-2.0
"""A byte-level BPE vocabulary of 1024 tokens, split as the ``qwen2`` pre-tokenizer splits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

SIZE = 1024
END = "<|endoftext|>"
PRE = "qwen2"
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in order of their ids (byte-level alphabet), merges as "a b", and the tokenizer itself."""

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    tokenizer: Tokenizer

    @property
    def end_id(self) -> int:
        return self.tokens.index(END)

    def encode(self, text: str) -> list[int]:
        return list(self.tokenizer.encode(text).ids)


def train_vocabulary(texts: Sequence[str]) -> Vocabulary:
    """The same texts give the same vocabulary."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    saved = json.loads(tokenizer.to_str())["model"]
    by_id = sorted(saved["vocab"], key=saved["vocab"].__getitem__)
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in saved["merges"]]
    return Vocabulary(tuple(by_id), tuple(merges), tokenizer)
