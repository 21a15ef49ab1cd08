# SPDX-License-Identifier: Apache-2.0
"""Tokenizers from a GGUF file's metadata alone, offline: ``load_tokenizer`` gives a :class:`Tokenizer`.

Kinds: SentencePiece-like with scores (``tokenizer.ggml.model`` "llama": Llama 2, Gemma 1 to 3), byte-level BPE ("gpt2":
Llama 3, Qwen, SmolLM) and Gemma 4's BPE. Ids equal llama.cpp's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from reference_engine.gguf_errors import KEY_VALUE, GgufError, quoted
from reference_engine.gguf_file import GgufFile
from reference_engine.gguf_values import Metadata
from reference_engine.tokenizer import token_flags as flag
from reference_engine.tokenizer.bpe import BpeEncoder, split_merges
from reference_engine.tokenizer.chat_template import render_chat
from reference_engine.tokenizer.errors import TokenizerError
from reference_engine.tokenizer.partition import partition
from reference_engine.tokenizer.pieces import byte_alphabet, piece_bytes, raw_bytes
from reference_engine.tokenizer.pre_tokenizers import DEFAULT, PRE_TOKENIZERS, PreTokenizer
from reference_engine.tokenizer.special_ids import SpecialIds, find_special_ids
from reference_engine.tokenizer.spm import SpmEncoder
from reference_engine.tokenizer.stream import TextStream
from reference_engine.tokenizer.vocabulary import Vocabulary, read_scores, read_vocabulary

__all__ = ["SpecialIds", "TextStream", "Tokenizer", "TokenizerError", "load_tokenizer"]

MODEL_KEY = "tokenizer.ggml.model"
PRE_KEY = "tokenizer.ggml.pre"
MERGES_KEY = "tokenizer.ggml.merges"
TEMPLATE_KEY = "tokenizer.chat_template"

# llama.cpp b11434, llama-vocab.cpp lines 2010 to 2160: ids that a kind has by itself, where the file gives none
_DEFAULT_IDS: Mapping[str, Mapping[str, int]] = {
    "llama": {"bos": 1, "eos": 2, "unknown": 0},
    "gpt2": {"bos": 11, "eos": 11},
    "gemma4": {},
}


# What is in the UTF-8 of text: no control characters, and not the planes 4 to 11 and 16, which hold no characters;
# published vocabularies lack some of those (SmolLM2: 0x04, 0xF1 and others)
_BYTES_OF_TEXT = (*b"\t\n\r", *range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xF1), 0xF3)


class Encoder(Protocol):
    """Text without special tokens to ids."""

    def encode(self, text: str) -> list[int]: ...


class Tokenizer:
    """Text to ids and back. ``special`` has the special ids, ``warnings`` sentences about the file, ``kind`` its model.

    ``add_bos`` and ``add_eos`` say what ``encode`` adds; ``chat_template`` is None where the file has none.
    """

    def __init__(
        self,
        kind: str,
        vocabulary: Vocabulary,
        encoder: Encoder,
        special: SpecialIds,
        metadata: Metadata,
        *,
        add_bos: bool,
        add_space_prefix: bool,
        byte_level: bool,
        warnings: Sequence[str],
    ) -> None:
        self.kind = kind
        self.special = special
        self.warnings = tuple(warnings)
        self.add_bos = metadata.boolean("tokenizer.ggml.add_bos_token", add_bos)
        self.add_eos = metadata.boolean("tokenizer.ggml.add_eos_token", False)
        self.add_space_prefix = metadata.boolean("tokenizer.ggml.add_space_prefix", add_space_prefix)
        if kind == "gemma4":
            self.add_bos = True  # llama.cpp overrides the file, whatever it says (its pull request 21500)
        self.chat_template: str | None = metadata.text(TEMPLATE_KEY, None)
        self._vocabulary = vocabulary
        self._encoder = encoder
        self._byte_level = byte_level
        longest_first = sorted(
            (index for index, flags in enumerate(vocabulary.flags) if flags & flag.SPECIAL),
            key=lambda index: -len(raw_bytes(vocabulary.texts[index])),
        )
        self._special = [(vocabulary.texts[index], index) for index in longest_first]
        self._visible = [pair for pair in self._special if not vocabulary.flags[pair[1]] & flag.HIDDEN]

    def __len__(self) -> int:
        return len(self._vocabulary)

    @property
    def bos(self) -> int | None:
        return self.special.bos

    @property
    def eos(self) -> int | None:
        return self.special.eos

    @property
    def eog(self) -> frozenset[int]:
        """All tokens that end a generation."""
        return self.special.eog

    def encode(self, text: str, add_special: bool = True, parse_special: bool = False) -> list[int]:
        """Ids of ``text``, with BOS and EOS around them as the file asks for, unless ``add_special`` is false.

        User-defined tokens are recognised in the text; control and unknown tokens only with ``parse_special``, so that
        what a user types cannot end a turn. TokenizerError for lone surrogates, and for text that needs a token which
        the vocabulary has not.
        """
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise TokenizerError(
                f"character {error.start} of the text is a lone surrogate; give the text as valid Unicode"
            ) from error
        out: list[int] = [self._needed("BOS", self.bos)] if add_special and self.add_bos else []
        at_start = True
        for fragment in partition(text, self._special if parse_special else self._visible):
            if isinstance(fragment, int):
                out.append(fragment)
                at_start = True
                continue
            prefixed = at_start and self.add_space_prefix and self.kind == "llama"
            out.extend(self._encoder.encode(" " + fragment if prefixed else fragment))
            at_start = False
        if add_special and self.add_eos:
            out.append(self._needed("EOS", self.eos))
        return out

    def piece(self, token: int, special: bool = True) -> bytes:
        """The bytes of one token; with ``special`` false, control and unknown tokens have none.

        TokenizerError for an id outside the vocabulary.
        """
        if not 0 <= token < len(self._vocabulary):
            raise TokenizerError(f"token {token} is outside the vocabulary of {len(self._vocabulary)} tokens")
        flags = self._vocabulary.flags[token]
        if not special and flags & flag.HIDDEN:
            return b""
        return piece_bytes(self._vocabulary.texts[token], flags, byte_level=self._byte_level)

    def decode_bytes(self, ids: Iterable[int], special: bool = False) -> bytes:
        """The bytes of a text from its beginning: the space that ``encode`` put before it is taken away again.

        Nothing else is cleaned up, so that byte-level vocabularies give back exactly what was encoded.
        """
        pieces = [self.piece(token, special) for token in ids]
        out = b"".join(pieces)
        if self.kind == "llama" and self.add_space_prefix and out.startswith(b" "):
            return out[1:]
        return out

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """``decode_bytes`` as text; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(ids, special).decode("utf-8", "replace")

    def stream(self, special: bool = False) -> TextStream:
        """Text out of tokens as they are generated; spaces stay as they come."""
        return TextStream(lambda token: self.piece(token, special))

    def apply_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = True,
        values: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt that the model's own chat template makes of ``messages`` (``{"role", "content"}`` each).

        ``encode_chat`` tokenizes it as well. ``values`` are further variables of the template (tools, enable_thinking).
        TokenizerError where the file has no template, where the template refuses, and where it breaks its limits.
        """
        if self.chat_template is None:
            raise TokenizerError(
                f"the model has no chat template (key '{TEMPLATE_KEY}'); give it plain text to continue instead"
            )
        return render_chat(
            self.chat_template,
            messages,
            add_generation_prompt=add_generation_prompt,
            bos_token=self._text(self.bos),
            eos_token=self._text(self.eos),
            values=values,
        )

    def encode_chat(
        self,
        messages: Sequence[Mapping[str, Any]],
        add_generation_prompt: bool = True,
        values: Mapping[str, Any] | None = None,
    ) -> list[int]:
        """Ids of the rendered chat; BOS stands once, whether the template writes it or not."""
        text = self.apply_chat(messages, add_generation_prompt, values)
        bos = self._text(self.bos)
        return self.encode(text, add_special=not (bos and text.startswith(bos)), parse_special=True)

    def _text(self, token: int | None) -> str:
        return "" if token is None else self._vocabulary.texts[token]

    @staticmethod
    def _needed(name: str, token: int | None) -> int:
        if token is None:
            raise TokenizerError(
                f"the model asks for a {name} token around every text, but names none that is in its vocabulary"
            )
        return token


def load_tokenizer(model: GgufFile) -> Tokenizer:
    """The tokenizer of an open model.

    GgufError, with key and byte offset, for a vocabulary that is wrong or of a kind that is not supported;
    MissingPackage where a BPE vocabulary meets an installation without the tokenizers package.
    """
    metadata = model.metadata
    kind = metadata.text(MODEL_KEY)
    if kind not in _DEFAULT_IDS:
        raise GgufError(
            KEY_VALUE,
            f"key '{MODEL_KEY}' is {quoted(kind)}; the kinds {', '.join(_DEFAULT_IDS)} are supported",
            metadata.offset(MODEL_KEY),
        )
    vocabulary = read_vocabulary(metadata)
    warnings = list(vocabulary.warnings)
    pre: PreTokenizer | None = None
    encoder: Encoder
    if kind == "llama":
        scores = read_scores(metadata, len(vocabulary))
    else:
        pre, warning = _pre_tokenizer(metadata, kind)
        warnings.extend(warning)
    special = find_special_ids(metadata, vocabulary.ids, vocabulary.flags, _DEFAULT_IDS[kind])
    if pre is None:
        encoder = SpmEncoder(vocabulary.ids, scores, special.unknown)
    else:
        offset = metadata.offset(MERGES_KEY)
        merges = split_merges(metadata.strings(MERGES_KEY).tolist(), offset)
        encoder = BpeEncoder(vocabulary.ids, merges, pre, offset)
        if not pre.spaces_escaped:
            warnings.extend(_missing_bytes(vocabulary.ids))
    return Tokenizer(
        kind,
        vocabulary,
        encoder,
        special,
        metadata,
        add_bos=True if pre is None else pre.add_bos,
        add_space_prefix=pre is None,
        byte_level=pre is not None and not pre.spaces_escaped,
        warnings=warnings,
    )


def _pre_tokenizer(metadata: Metadata, kind: str) -> tuple[PreTokenizer, list[str]]:
    """What cuts the text, and a warning where that is a guess."""
    name = kind if kind == "gemma4" else metadata.text(PRE_KEY, "")
    found = PRE_TOKENIZERS.get(name)
    if found is not None:
        return found, []
    said = f"key '{PRE_KEY}' is {quoted(name)}, which is not known here" if name else f"key '{PRE_KEY}' is missing"
    return DEFAULT, [f"{said}: text is cut as for 'default', token ids may be wrong and answers worse"]


def _missing_bytes(ids: Mapping[str, int]) -> list[str]:
    alphabet = byte_alphabet()
    missing = [byte for byte in _BYTES_OF_TEXT if alphabet[byte] not in ids]
    if not missing:
        return []
    return [f"{len(missing)} bytes of UTF-8 have no token, the first is 0x{missing[0]:02X}; text loses them"]
