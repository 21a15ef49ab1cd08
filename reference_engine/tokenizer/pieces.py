# SPDX-License-Identifier: Apache-2.0
"""What bytes a token stands for: the byte-level alphabet of GPT-2, byte tokens ``<0x0A>``, spaces as U+2581."""

from __future__ import annotations

import re

from reference_engine.tokenizer import token_flags as flag

ESCAPED_SPACE = "▁"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


def byte_alphabet() -> tuple[str, ...]:
    """The character that stands for each byte in a byte-level vocabulary.

    Printable Latin-1 stands for itself; the 68 other bytes, in order, are the characters from U+0100 on (GPT-2's
    encoder, ``bytes_to_unicode``).
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(byte) if byte in printable else chr(next(others)) for byte in range(256))


_BYTE_OF = {character: byte for byte, character in enumerate(byte_alphabet())}


def byte_token(byte: int) -> str:
    """The text of the token for one byte, in vocabularies that have such: ``<0x0A>``."""
    return f"<0x{byte:02X}>"


def raw_bytes(text: str) -> bytes:
    """A token's text as it stands in the file; text that was no UTF-8 there comes as surrogates."""
    return text.encode("utf-8", "surrogateescape")


def piece_bytes(text: str, flags: int, *, byte_level: bool) -> bytes:
    """The bytes that a token of this text and these flags adds to an output, control tokens included.

    A character outside the alphabet, in a byte-level vocabulary, stands for its own UTF-8 bytes (llama.cpp would write
    ``[UNK_BYTE_0x...]``). Unused tokens and such of an unknown type stand for nothing.
    """
    if flags & flag.SPECIAL:
        return raw_bytes(text)
    if flags & flag.NORMAL:
        if not byte_level:
            return raw_bytes(text.replace(ESCAPED_SPACE, " "))
        try:
            return bytes([_BYTE_OF[character] for character in text])
        except KeyError:
            return b"".join(
                bytes((_BYTE_OF[character],)) if character in _BYTE_OF else raw_bytes(character) for character in text
            )
    if flags & flag.BYTE:
        found = _BYTE_TOKEN.fullmatch(text)
        return bytes((int(found.group(1), 16),)) if found else raw_bytes(text)
    return b""
