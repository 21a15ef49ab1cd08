# SPDX-License-Identifier: Apache-2.0
"""Which tokens begin, end and frame a text: by the file's keys, else by their text, as llama.cpp decides it.

Source of the tables: llama.cpp b11434, llama-vocab.cpp lines 2680 to 3010, whose texts these are.
Where several texts could be one special token, llama.cpp takes whichever its hash map yields first; here the first of
the table wins. The set of end-of-generation tokens does not depend on that, but for repeated FIM texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_engine.gguf_values import Metadata
from reference_engine.tokenizer import token_flags as flag

PREFIX = "tokenizer.ggml."

# name: keys that give the id, the last one present wins (the older spellings come last); texts that give it otherwise
_BY_TEXT: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "eot": (
        ("eot_token_id",),
        (
            "<|eot_id|>",
            "<|im_end|>",
            "<|end|>",
            "<end_of_turn>",
            "<|endoftext|>",
            "<|end_of_text|>",
            "<EOT>",
            "_<EOT>",
            "[EOT]",
            "<｜end▁of▁sentence｜>",  # noqa: RUF001  DeepSeek writes full-width bars
            "<end_of_utterance>",
        ),
    ),
    "eom": (("eom_token_id",), ("<|eom_id|>",)),
    "fim_pre": (
        ("fim_pre_token_id", "prefix_token_id"),
        (
            "<|fim_prefix|>",
            "<fim-prefix>",
            "<fim_prefix>",
            "<｜fim▁begin｜>",  # noqa: RUF001
            "<PRE>",
            "▁<PRE>",
            "<|code_prefix|>",
            "<|prefix|>",
        ),
    ),
    "fim_suf": (
        ("fim_suf_token_id", "suffix_token_id"),
        (
            "<|fim_suffix|>",
            "<fim-suffix>",
            "<fim_suffix>",
            "<｜fim▁hole｜>",  # noqa: RUF001
            "<SUF>",
            "▁<SUF>",
            "<|code_suffix|>",
            "<|suffix|>",
        ),
    ),
    "fim_mid": (
        ("fim_mid_token_id", "middle_token_id"),
        (
            "<|fim_middle|>",
            "<fim-middle>",
            "<fim_middle>",
            "<｜fim▁end｜>",  # noqa: RUF001
            "<MID>",
            "▁<MID>",
            "<|code_middle|>",
            "<|middle|>",
        ),
    ),
    "fim_pad": (("fim_pad_token_id",), ("<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]")),
    "fim_rep": (
        ("fim_rep_token_id",),
        ("<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"),
    ),
    "fim_sep": (("fim_sep_token_id",), ("<|file_sep|>",)),
}

_ENDS_GENERATION = ("eot", "eom", "fim_pad", "fim_rep", "fim_sep")

_END_TEXTS = (
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "</s>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",  # noqa: RUF001
    "[e~[",
)

_ALWAYS_SHOWN = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")  # gpt-oss

# a text that ends generation but where the others are there too: (text, all of these present, its flags then)
_NO_END_AFTER_ALL = (
    ("<|end|>", ("<|return|>", "<|call|>"), flag.USER_DEFINED),
    ("<|end|>", ("<|return|>", "<|calls|>"), flag.USER_DEFINED),
    ("<|end|>", ("<|call|>", "<|flush|>"), flag.USER_DEFINED),
    ("<|end|>", ("<|calls|>", "<|flush|>"), flag.USER_DEFINED),
    ("</s>", ("<|tool_response>",), flag.NORMAL),  # Gemma 4
    ("</s>", ("<|plamo:eos|>",), flag.NORMAL),
)


@dataclass(frozen=True)
class SpecialIds:
    """Ids, None where there is no such token. ``eog`` are all tokens that end a generation."""

    bos: int | None
    eos: int | None
    eot: int | None
    unknown: int | None
    padding: int | None
    eog: frozenset[int]


def find_special_ids(
    metadata: Metadata, ids: Mapping[str, int], flags: bytearray, defaults: Mapping[str, int]
) -> SpecialIds:
    """Special ids of a vocabulary; ``flags`` is corrected where a text says more than its type does.

    ``defaults`` are the ids that a kind of tokenizer has by itself (SPM: bos 1, eos 2, unknown 0); they and the keys
    count only where they name a token.
    """
    n_vocab = len(flags)

    def keyed(keys: tuple[str, ...], default: int | None) -> int | None:
        found = default if default is not None and default < n_vocab else None
        for key in keys:
            value = metadata.integer(PREFIX + key, None)
            if value is not None and 0 <= value < n_vocab:
                found = value
        return found

    bos = keyed(("bos_token_id",), defaults.get("bos"))
    eos = keyed(("eos_token_id",), defaults.get("eos"))
    unknown = keyed(("unknown_token_id",), defaults.get("unknown"))
    padding = keyed(("padding_token_id",), None)
    framing: dict[str, int] = {}
    for name, (keys, texts) in _BY_TEXT.items():
        found = keyed(keys, None)
        if found is None:
            found = next((ids[text] for text in texts if text in ids), None)
            if found is not None:
                flags[found] |= flag.CONTROL
        if found is not None:
            framing[name] = found
    eog = _end_of_generation(ids, flags, framing, eos)
    return SpecialIds(bos, eos, framing.get("eot"), unknown, padding, frozenset(eog))


def _end_of_generation(
    ids: Mapping[str, int], flags: bytearray, framing: Mapping[str, int], eos: int | None
) -> set[int]:
    by_text = {ids[text] for text in _END_TEXTS if text in ids}
    for token in by_text:
        flags[token] |= flag.CONTROL
    for text in _ALWAYS_SHOWN:
        if text in ids:
            flags[ids[text]] = flag.USER_DEFINED
    eog = by_text | {framing[name] for name in _ENDS_GENERATION if name in framing}
    if eos is not None:
        eog.add(eos)
    present = {text for text in (*_END_TEXTS, "<|plamo:eos|>") if ids.get(text) in eog}
    for text, others, flags_then in _NO_END_AFTER_ALL:
        if text in present and present.issuperset(others):
            eog.discard(ids[text])
            flags[ids[text]] = flags_then
    return eog
