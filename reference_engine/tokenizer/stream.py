# SPDX-License-Identifier: Apache-2.0
"""Text out of tokens as they come: a character is shown once all of its bytes are there."""

from __future__ import annotations

import codecs
from collections.abc import Callable


class TextStream:
    """Feed ids one by one; each call gives the text that is complete by then. Bytes that are no UTF-8 become U+FFFD."""

    def __init__(self, piece: Callable[[int], bytes]) -> None:
        self._piece = piece
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, token: int) -> str:
        """The text that this token completes; empty in the middle of a character and for a hidden token."""
        return self._decoder.decode(self._piece(token))

    def finish(self) -> str:
        """What is left of an unfinished character, as U+FFFD; empty otherwise. The stream starts anew."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest
