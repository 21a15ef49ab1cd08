# SPDX-License-Identifier: Apache-2.0
"""Size of a model's vocabulary, and whether what the file says of it agrees."""

from __future__ import annotations

from reference_engine.gguf_errors import KEY_MISSING, KEY_TYPE, KEY_VALUE, TOKEN_ID, GgufError
from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_values import GgufArray, Metadata

TOKENS_KEY = "tokenizer.ggml.tokens"
_BESIDE_TOKENS = ("tokenizer.ggml.scores", "tokenizer.ggml.token_type")
_TOKEN_IDS = ("bos_token_id", "eos_token_id", "unknown_token_id", "padding_token_id")


def vocabulary_size(model: GgufFile, declared: int | None) -> int:
    """Number of tokens: the length of the token list, else ``declared`` (``vocab_size``), else the embedding's rows.

    GgufError where none of them is there, or where scores or types do not count one for each token. ``vocab_size``
    itself may differ from the token list: llama.cpp reads it only where there is none.
    """
    metadata = model.metadata
    if TOKENS_KEY in metadata:
        tokens = len(metadata.strings(TOKENS_KEY))
        for key in _BESIDE_TOKENS:
            _one_for_each(metadata, key, tokens)
        return tokens
    if declared is not None:
        return declared
    embedding = model.tensors.get("token_embd.weight")
    if embedding is None or len(embedding.dims) < 2:
        raise GgufError(KEY_MISSING, f"key '{TOKENS_KEY}' is missing, and nothing else tells the number of tokens")
    return embedding.dims[1]


def special_token_warnings(metadata: Metadata, n_vocab: int) -> tuple[GgufError, ...]:
    """A warning for each special token id that is no token; llama.cpp ignores such an id and goes on."""
    found: list[GgufError] = []
    for name in _TOKEN_IDS:
        key = f"tokenizer.ggml.{name}"
        if key not in metadata:
            continue
        value = metadata[key]
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < n_vocab:
            found.append(
                GgufError(TOKEN_ID, f"key '{key}' names no token; there are {n_vocab} tokens", metadata.offset(key))
            )
    return tuple(found)


def _one_for_each(metadata: Metadata, key: str, tokens: int) -> None:
    if key not in metadata:
        return
    found = metadata[key]
    if not isinstance(found, GgufArray):
        raise GgufError(KEY_TYPE, f"key '{key}' is no array", metadata.offset(key))
    if len(found) != tokens:
        raise GgufError(KEY_VALUE, f"key '{key}' has {len(found)} items for {tokens} tokens", metadata.offset(key))
